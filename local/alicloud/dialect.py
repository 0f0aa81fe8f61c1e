"""Alibaba Cloud's wire: who calls which action, with which parameters; envelopes of answers and errors."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from local.alicloud.account import Account
from local.alicloud.keys import key_of, require_allowed
from local.alicloud.products import BY_VERSION, TABLE, Product
from local.alicloud.signatures import CLOCK_SKEW, Pairs, Signature, signature_of, verify
from local.alicloud.wire import from_json, typed, unflatten
from local.http_messages import Answer, Request
from local.standin.actions import Call
from local.standin.refusals import Refusal
from local.standin.shapes import Misfit

ANONYMOUS: Final = frozenset({"sts.AssumeRoleWithOIDC"})
"""Actions whose requests are not signed: the token in them identifies the caller."""

_COMMON: Final = frozenset(
    {"Action", "Format", "Version", "Timestamp", "AccessKeyId", "SecurityToken"}
    | {"Signature", "SignatureMethod", "SignatureVersion", "SignatureNonce", "SignatureType"}
)


class AlibabaDialect:
    """Of RPC-style products. Remembers nonces: none is accepted twice while its time stamp is."""

    def __init__(self) -> None:
        self._nonces: dict[str, float] = {}

    def call(self, world: Account, request: Request) -> Call:
        """Who calls what. Raises Refusal."""
        query = parse_qsl(request.query, keep_blank_values=True)
        form = _form(request)
        product, action = _operation(request, dict(form) | dict(query))
        operation = f"{product.name}.{action}"
        caller = self._caller(world, request, query, form, product, action)
        arguments = _arguments(product, action, query, form, is_acs3="authorization" in request.headers)
        region = arguments.get("RegionId", world.region)
        if region != world.region:
            raise Refusal(404, "InvalidRegionId.NotFound", f"The specified RegionId does not exist: {region}.")
        return Call(operation, arguments, arguments.get("ClientToken"), caller)

    def misfit(self, call: Call, misfit: Misfit) -> Refusal:
        """The error for a missing, unknown or wrongly typed parameter."""
        name = misfit.path.partition(".")[0].partition("[")[0]
        if misfit.rule == "required":
            return Refusal(400, f"Missing{name}", f"{misfit.path} is mandatory for this action.")
        if misfit.rule == "additionalProperties":
            return Refusal(400, "UnknownParameter", f"{call.operation} has no parameter {misfit.path}.")
        return Refusal(400, f"Invalid{name}", f"Specified parameter {misfit.path} is not valid: {misfit.message}.")

    def throttled(self, call: Call) -> Refusal:
        """The error for a call over its rate."""
        del call
        return Refusal(400, "Throttling.User", "Request was denied due to user flow control.")

    def token_reused(self, call: Call) -> Refusal:
        """The error for a client token that was used with other parameters."""
        code = "IdempotenceSignatureMismatch" if call.operation.startswith("nlb.") else "IdempotentParameterMismatch"
        return Refusal(400, code, "The request uses a client token of an earlier request with other parameters.")

    def answer(self, result: Mapping[str, Any]) -> Answer:
        """The envelope of a result."""
        return _json(200, {"RequestId": _request_id(), **result})

    def refusal(self, request: Request, refusal: Refusal) -> Answer:
        """The envelope of an error."""
        body = {
            "RequestId": _request_id(),
            "HostId": request.headers.get("host", ""),
            "Code": refusal.code,
            "Message": refusal.message,
        }
        return _json(refusal.status, body)

    def _caller(
        self, account: Account, request: Request, query: Pairs, form: Pairs, product: Product, action: str
    ) -> str:
        signature = signature_of(request, query, form)
        if signature is None:
            if f"{product.name}.{action}" in ANONYMOUS:
                return ""
            raise Refusal(400, "MissingAccessKeyId", "AccessKeyId is mandatory for this action.")
        key = key_of(account, signature.access_key, signature.security_token)
        now = account.clock()
        verify(request, query, form, signature, key["secret"], datetime.fromtimestamp(now, UTC))
        self._use_nonce(signature, now)
        require_allowed(key, product.name, action)
        return str(key["name"])

    def _use_nonce(self, signature: Signature, now: float) -> None:
        while self._nonces and next(iter(self._nonces.values())) <= now:  # the oldest first
            del self._nonces[next(iter(self._nonces))]
        key = f"{signature.access_key} {signature.nonce}"
        if key in self._nonces:
            raise Refusal(400, "SignatureNonceUsed", "Specified signature nonce was used already.")
        self._nonces[key] = now + 2 * CLOCK_SKEW.total_seconds()


def _form(request: Request) -> Pairs:
    kind = request.headers.get("content-type", "")
    if not request.body:
        return []
    if not kind.startswith("application/x-www-form-urlencoded"):
        raise Refusal(415, "UnsupportedHTTPMethod", f"A body must be a form, not {kind or 'of an unknown type'}.")
    return parse_qsl(request.body.decode(), keep_blank_values=True)


def _operation(request: Request, given: Mapping[str, str]) -> tuple[Product, str]:
    if request.method not in ("GET", "POST") or request.path != "/":
        raise Refusal(404, "InvalidAction.NotFound", "Specified api is not found, please check your url and method.")
    action = given.get("Action") or request.headers.get("x-acs-action")
    version = given.get("Version") or request.headers.get("x-acs-version")
    if not action:
        raise Refusal(400, "MissingAction", "Action is mandatory for this action.")
    if version not in BY_VERSION:
        raise Refusal(400, "InvalidVersion", "Specified parameter Version is not valid.")
    product = BY_VERSION[version]
    if f"{product.name}.{action}" not in TABLE.actions:
        raise Refusal(
            404,
            "InvalidAction.NotFound",
            f"Specified api is not found: the stand-in has no {product.name} {action}.",
        )
    if "Action" in given and given.get("Format", "").upper() != "JSON":
        raise Refusal(501, "NotSimulated", "the stand-in answers in JSON alone; add Format=JSON")
    return product, action


def _arguments(product: Product, action: str, query: Pairs, form: Pairs, *, is_acs3: bool) -> dict[str, Any]:
    """The parameters, with the types of the SDK's model. With ACS3 they must be where the SDK puts them."""
    schema = TABLE.actions[f"{product.name}.{action}"].parameters
    if is_acs3:
        known = schema["properties"]
        in_form = product.sdk.in_form(action)
        for pairs, belongs in ((query, False), (form, True)):
            for name, _ in pairs:
                top = name.partition(".")[0]
                if top not in known or top == "RegionId":
                    continue
                if (top in in_form) != belongs:
                    place = "form" if top in in_form else "query"
                    message = f"{product.name} {action}: {top} belongs in the {place}."
                    raise Refusal(400, "MisplacedParameter", message)
    try:
        arguments = unflatten((name, value) for name, value in [*query, *form] if name not in _COMMON)
    except ValueError as error:
        raise Refusal(400, "InvalidParameter", str(error)) from None
    for name in product.sdk.as_json(action) & arguments.keys():
        arguments[name] = from_json(arguments[name])
    if "RegionId" not in schema["properties"]:  # a common parameter: older clients send it to every action
        arguments.pop("RegionId", None)
    converted: dict[str, Any] = typed(arguments, schema)
    return converted


def _json(status: int, body: Mapping[str, Any]) -> Answer:
    headers = {"content-type": "application/json;charset=utf-8", "x-acs-request-id": str(body["RequestId"])}
    return Answer(status, json.dumps(body).encode(), headers)


def _request_id() -> str:
    return str(uuid.uuid4()).upper()
