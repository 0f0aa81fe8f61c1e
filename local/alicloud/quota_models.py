"""The schemas of the quota center, of what a controller and doctor ask alone, as alibabacloud-quotas20200510 1.2.2.

That SDK has the layout of years ago, which `sdk.Sdk` does not read.
"""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.sdk import Schema, UnknownAction


def _object(required: tuple[str, ...] = (), **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_DIMENSION: Final = _object(DimensionKey=_TEXT, DimensionValues=_list(_TEXT), Name=_TEXT, Requisite={"type": "boolean"})
_REQUESTS: Final = {
    "GetProductQuota": _object(
        ("ProductCode", "QuotaActionCode"),
        ProductCode=_TEXT,
        QuotaActionCode=_TEXT,
        Dimensions=_list(_object(Key=_TEXT, Value=_TEXT)),
    ),
    "ListProductQuotaDimensions": _object(("ProductCode",), ProductCode=_TEXT),
}
_ANSWERS: Final = {
    "GetProductQuota": _object(
        Quota=_object(ProductCode=_TEXT, QuotaActionCode=_TEXT, TotalQuota=_NUMBER, TotalUsage=_NUMBER)
    ),
    "ListProductQuotaDimensions": _object(QuotaDimensions=_list(_DIMENSION), TotalCount={"type": "integer"}),
}


class QuotaModels:
    """In the place of `sdk.Sdk`."""

    def require(self, action: str) -> None:
        """Raise UnknownAction for any other."""
        if action not in _REQUESTS:
            raise UnknownAction(f"the quota center has no action {action} here")

    def request_schema(self, action: str) -> Schema:
        """Of its parameters."""
        return _REQUESTS[action]

    def answer_schema(self, action: str) -> Schema:
        """Of its answer."""
        return _ANSWERS[action]

    def as_json(self, action: str) -> frozenset[str]:
        """No parameter is JSON text."""
        self.require(action)
        return frozenset()

    def in_form(self, action: str) -> frozenset[str]:
        """All."""
        return frozenset(_REQUESTS[action]["properties"])
