"""The section `mycloud` of a stack file, and the tokens beside it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from ...config_values import ENDPOINT, NAMESPACE, ConfigError, Day, pattern_of, url
from ...existing_config import check_id
from ...stack_model import CloudSection, StackConfig

TOKEN = "mycloudToken"
CONTROLLER_TOKEN = "mycloudControllerToken"


class MycloudConfig(CloudSection):
    """How the cloud `mycloud` is reached."""

    secret_keys: ClassVar = {
        TOKEN: "Token for mycloud's API (secret).",
        CONTROLLER_TOKEN: (
            "Token for mycloud's API that the controllers get (secret); without it they get `mycloudToken`."
        ),
    }

    endpoint: Annotated[str, AfterValidator(url)] = Field(
        description="URL of mycloud's API.", json_schema_extra=pattern_of(ENDPOINT.pattern)
    )
    token_expires: Day | None = Field(
        default=None,
        description="The last day on which the controllers' token is valid, YYYY-MM-DD, as mycloud said when it made"
        " it; the Secret with the cloud config carries it.",
    )

    def check(self, stack: StackConfig) -> None:
        super().check(stack)
        if not stack.secret(TOKEN):
            raise ConfigError(f"{NAMESPACE}:{TOKEN} is missing: cloud mycloud needs a token for its API")

    def check_existing(self, stack: StackConfig) -> None:
        if stack.existing is not None:
            check_id("clusterId", stack.existing.cluster_id, "c")
            check_id("networkId", stack.existing.network_id, "net")
