"""How a dynamic provider reaches mycloud: by the stack's config only, so that no credential is ever an input.

Import-light, because every dynamic provider imports it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cloud_controller.cloud import InvalidConfiguration

from ...placeholder import PLACEHOLDER, PlaceholderSecrets

if TYPE_CHECKING:
    from pulumi.dynamic.config import Config

    from cloud_controller.clouds.mycloud.client import Client


@dataclass(frozen=True, slots=True)
class Access:
    """Where mycloud is and the token for it, as the stack's config has them; None where it has none."""

    endpoint: str | None
    token: str | None = field(repr=False)

    @classmethod
    def from_config(cls, config: Config) -> Access:
        """Read the config that the engine hands to a provider: strings, objects as JSON text."""
        settings = config.get("mycloud")
        if isinstance(settings, str):
            settings = json.loads(settings)
        return cls(
            endpoint=settings.get("endpoint") if isinstance(settings, dict) else None,
            token=config.get("mycloudToken"),
        )

    def require(self) -> tuple[str, str]:
        """Endpoint and token. Raises InvalidConfiguration for a missing one, PlaceholderSecrets for a placeholder."""
        if not self.endpoint:
            raise InvalidConfiguration("mycloud", "the stack's config has no endpoint", "{endpoint: URL of its API}")
        if not self.token:
            raise InvalidConfiguration("mycloudToken", "the stack's config has no token", "a token of mycloud's API")
        if self.token == PLACEHOLDER:
            raise PlaceholderSecrets("mycloudToken is a placeholder: this run has no secrets of the stack")
        return self.endpoint, self.token

    def client(self, *, deadline: float = 60.0) -> Client:
        """A client; `deadline` (seconds) bounds each of its calls. Raises as `require`."""
        from cloud_controller.clouds.mycloud.client import Client

        endpoint, token = self.require()
        return Client(endpoint, token, deadline=deadline)


def cloud_config(config: Config, cluster_id: str, network_id: str) -> str:
    """The text of the cloud config for a cluster. Raises as `Access.require`."""
    from cloud_controller.clouds.mycloud.config import Config as CloudConfig
    from cloud_controller.clouds.mycloud.config import render

    endpoint, token = Access.from_config(config).require()
    return render(CloudConfig(endpoint=endpoint, token=token, cluster_id=cluster_id, network_id=network_id))
