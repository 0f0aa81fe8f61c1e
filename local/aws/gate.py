"""The gate in front of moto: it authorizes callers, serializes calls, and saves a change before answering.

moto is not thread-safe, and accepts any key that a request names. WSGI middleware.
"""

from __future__ import annotations

import hmac
import io
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from moto.core.utils import utcnow
from moto.iam.models import get_account_id_from
from moto.sts.models import AssumedRole, sts_backends

from local.aws.calls import Call, call_of, speaks_json
from local.aws.rights import permits
from local.aws.signatures import Refused, Signature, signature_of, verify
from local.aws.simulator import Simulator
from local.aws.web_identity import ACTION, check_token, check_trust, claims_of
from local.http_messages import Request

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

HEALTH = "/healthz"
_NOT_AWS = ("/moto-api", "/latest/")
"""moto's own paths: its control, and the metadata service of a machine."""

_UNSIGNED = "AssumeRoleWithWebIdentity"
"""Unsigned in AWS, too: the caller has a token of an identity provider, and no key yet."""

_log = logging.getLogger(__name__)


class Gate:
    """`health` is the answer to GET /healthz, None while something is wrong; `changed` is called after each change.

    `key_of_issuer`: the public key (PEM) of a cluster's ServiceAccount tokens, by their issuer.
    """

    def __init__(
        self,
        moto: Application,
        simulator: Simulator,
        health: Callable[[], Mapping[str, str] | None],
        changed: Callable[[], None],
        key_of_issuer: Callable[[str], str | None],
    ) -> None:
        self._moto = moto
        self._simulator = simulator
        self._health = health
        self._changed = changed
        self._key_of_issuer = key_of_issuer

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == HEALTH:
            health = self._health()
            return _answer(start_response, "200 OK" if health else "503 Service Unavailable", health)
        request = _request(environ)
        signature, call = None, None
        try:
            if environ["PATH_INFO"].startswith(_NOT_AWS):
                raise Refused("AccessDenied", "moto's own API is disabled: it would bypass AWS's API")
            signature = signature_of(request)
            call = call_of(request, signature.service if signature else "")
            self._check(request, signature, call)
        except Refused as refusal:
            _log.info("%s refused: %s", (call and call.action) or request.path, refusal.code)
            return _refusal(start_response, refusal, as_json=speaks_json(request))
        if signature is not None:
            environ["HTTP_AUTHORIZATION"] = signature.as_header()  # moto does not fully support presigned requests
        with self._simulator.lock:
            body = b"".join(self._moto(environ, start_response))
            if not call.only_reads:
                if signature is not None:
                    self._note_creator(signature)
                self._simulator.save()
                self._changed()
        return [body]

    def _check(self, request: Request, signature: Signature | None, call: Call) -> None:
        """Authenticate and authorize the caller. Raises Refused."""
        if signature is not None:
            verify(request, signature, self._simulator.secret_of)
            session = self._simulator.session_of(signature.access_key)
            if session is not None:
                _check_session(session, request.headers.get("x-amz-security-token", ""), call)
                self._check_rights(session, call)
        elif call.action == _UNSIGNED:
            self._check_identity(call.parameters.get("RoleArn", ""), call.parameters.get("WebIdentityToken", ""))
        else:
            raise Refused("MissingAuthenticationToken", "Request is missing Authentication Token")

    def _check_rights(self, session: AssumedRole, call: Call) -> None:
        """A role's session may call what its policies name; users may call anything, and everyone EKS."""
        if call.action and not permits(self._simulator.policies_of(session), str(call)):
            code = "UnauthorizedOperation" if call.service == "ec2" else "AccessDenied"
            raise Refused(code, f"{session.arn} is not authorized to perform: {call}")

    def _check_identity(self, role: str, token: str) -> None:
        """Check that the ServiceAccount of the token may assume the role: moto accepts any."""
        issuer = claims_of(token).issuer
        provider, key = self._simulator.provider(issuer), self._key_of_issuer(issuer)
        if provider is None or key is None:
            raise Refused("InvalidIdentityToken", f"No OpenIDConnect provider found in your account for {issuer}")
        check_token(token, key, provider)
        policy = self._simulator.trust_policy(role)
        if policy is None:
            raise Refused("AccessDenied", f"Not authorized to perform {ACTION}")
        check_trust(policy, token, provider)

    def _note_creator(self, signature: Signature) -> None:
        """Record the creator: since calls are serialized, this call made the cluster that has none yet."""
        for cluster in self._simulator.clusters():
            if not cluster.creator:
                cluster.creator = caller(signature)


def _check_session(session: AssumedRole, token: str, call: Call) -> None:
    """Raise Refused unless the request has the session's valid token, in its header or presigned."""
    given = token or call.parameters.get("X-Amz-Security-Token", "")
    if not hmac.compare_digest(given.encode(), session.session_token.encode()):
        raise Refused("InvalidClientTokenId", "The security token included in the request is invalid.")
    if utcnow() > session.expiration:
        raise Refused("ExpiredToken", "The security token included in the request is expired")


def caller(signature: Signature) -> str:
    """The signer's ARN, as STS returns it."""
    account = get_account_id_from(signature.access_key)
    region = signature.scope.split("/")[1]
    return sts_backends[account]["aws"].get_caller_identity(signature.access_key, region)[1]


def _request(environ: Environ) -> Request:
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    path, _, query = str(environ["RAW_URI"]).partition("?")
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    headers |= {"content-type": environ.get("CONTENT_TYPE", ""), "content-length": environ.get("CONTENT_LENGTH", "")}
    return Request(environ["REQUEST_METHOD"], path, query, headers, body)


def _refusal(start_response: StartResponse, refusal: Refused, *, as_json: bool) -> list[bytes]:
    """In the format of the client's protocol."""
    if as_json:
        answer = {"__type": refusal.code, "message": str(refusal)}
        return _answer(start_response, "403 Forbidden", answer, ("x-amzn-ErrorType", refusal.code))
    # Only EC2 has its own envelope; its clients also accept this one.
    why = escape(str(refusal))
    text = f"<ErrorResponse><Error><Code>{refusal.code}</Code><Message>{why}</Message></Error></ErrorResponse>".encode()
    start_response("403 Forbidden", [("Content-Type", "text/xml"), ("Content-Length", str(len(text)))])
    return [text]


def _answer(start_response: StartResponse, status: str, body: object, *headers: tuple[str, str]) -> list[bytes]:
    content = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(content))), *headers])
    return [content]
