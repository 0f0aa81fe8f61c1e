"""Parts of a cluster that is there already, in the section `alicloud` of a stack file."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from ...config_values import ConfigError, Section, line, matching, pattern_of

_PROVIDER = re.compile(r"acs:ram::[0-9]+:oidc-provider/[A-Za-z0-9._-]+")
_ISSUER = re.compile(r"https://\S+")
_VSWITCH, _TABLE = re.compile("vsw-[0-9a-z]+"), re.compile("vtb-[0-9a-z]+")

RouteTableId = Annotated[str, matching(_TABLE, "vtb-…"), Field(json_schema_extra=pattern_of(_TABLE.pattern))]


class AlicloudExistingConfig(Section):
    """What the controllers and the CCM's role need of an existing cluster."""

    oidc_provider: Annotated[str, matching(_PROVIDER, "acs:ram::ACCOUNT:oidc-provider/NAME")] | None = Field(
        default=None,
        description="The ARN of the cluster's OIDC provider in RAM (RRSA): the program then makes a role for the cloud"
        " controller manager's ServiceAccount. Without it the manager has the role of its machine.",
        json_schema_extra=pattern_of(_PROVIDER.pattern),
    )
    oidc_issuer: Annotated[str, matching(_ISSUER, "the https:// URL of the issuer")] | None = Field(
        default=None, description="The URL of the cluster's OIDC issuer; required with oidcProvider."
    )
    vswitch_id: Annotated[str, matching(_VSWITCH, "vsw-…")] | None = Field(
        default=None,
        description="The vSwitch of internal CLBs whose Service names none.",
        json_schema_extra=pattern_of(_VSWITCH.pattern),
    )
    route_table_ids: list[RouteTableId] = Field(
        default_factory=list, description="The tables of pod routes, where the network has several."
    )

    def check(self) -> None:
        """Raise ConfigError for half an identity."""
        if (self.oidc_provider is None) != (self.oidc_issuer is None):
            why = "must be set together with oidcProvider, which RAM shows with it"
            raise ConfigError(line("alicloud.existing.oidcIssuer", self.oidc_issuer, why))
