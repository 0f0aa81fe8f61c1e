"""The schemas of the quota center. No SDK of it is installed: these are ours, of what a controller asks alone."""

from __future__ import annotations

from typing import Final

from local.alicloud.sdk import Schema, UnknownAction

_TEXT: Final = {"type": "string"}
_QUOTA: Final = {
    "type": "object",
    "properties": {"ProductCode": _TEXT, "QuotaActionCode": _TEXT, "TotalQuota": {"type": "number"}},
    "additionalProperties": False,
}


class QuotaModels:
    """In the place of `sdk.Sdk`, for one action."""

    def require(self, action: str) -> None:
        """Raise UnknownAction for any other."""
        if action != "GetProductQuota":
            raise UnknownAction(f"the quota center has no action {action} here")

    def request_schema(self, action: str) -> Schema:
        """Of its parameters."""
        self.require(action)
        names = ("ProductCode", "QuotaActionCode")
        properties = dict.fromkeys(names, _TEXT)
        return {"type": "object", "properties": properties, "required": [*names], "additionalProperties": False}

    def answer_schema(self, action: str) -> Schema:
        """Of its answer."""
        self.require(action)
        return {"type": "object", "properties": {"Quota": _QUOTA}, "additionalProperties": False}

    def as_json(self, action: str) -> frozenset[str]:
        """No parameter is JSON text."""
        self.require(action)
        return frozenset()

    def in_form(self, action: str) -> None:
        """Query or form: both are accepted."""
        self.require(action)
