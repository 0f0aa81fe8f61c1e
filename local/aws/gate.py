"""What stands before moto: callers are checked, calls are made one by one, a change is on disk when it is answered.

moto is not made for several threads, and believes whatever key a request names. WSGI middleware.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from moto.iam.models import get_account_id_from
from moto.sts.models import sts_backends

from local.aws.rights import permits
from local.aws.signatures import Refused, Request, Signature, signature_of, verify
from local.aws.simulator import Simulator
from local.aws.web_identity import ACTION, check_token, check_trust, claims_of

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

HEALTH = "/healthz"
_UNSIGNED = "AssumeRoleWithWebIdentity"
"""In AWS, too: its caller has a token of an identity provider, and no key yet."""

_READS = re.compile(r"(Describe|Get|List|Lookup|Simulate|Decode)")

_log = logging.getLogger(__name__)


class Gate:
    """`health` is what GET /healthz answers, None while something is amiss; `changed` is called after each change.

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
        action = _action(request)
        try:
            signature = self._signer(request, action)
        except Refused as refusal:
            _log.info("%s refused: %s", action or request.path, refusal.code)
            return _refusal(start_response, request, refusal)
        if signature is not None:
            environ["HTTP_AUTHORIZATION"] = signature.as_header()  # of a presigned request moto knows too little
        with self._simulator.lock:
            body = b"".join(self._moto(environ, start_response))
            if not _only_reads(request, action):
                if signature is not None:
                    self._note_creator(signature)
                self._simulator.save()
                self._changed()
        return [body]

    def _signer(self, request: Request, action: str) -> Signature | None:
        if request.path.startswith("/moto-api"):
            raise Refused("AccessDenied", "moto's own API would change what calls of AWS's API alone may change")
        signature = signature_of(request)
        if signature is not None:
            verify(request, signature, self._simulator.secret_of)
            self._check_rights(signature, action)
        elif action == _UNSIGNED:
            form = parse_qs(request.body.decode(errors="replace") or request.query)
            self._check_identity(form.get("RoleArn", [""])[0], form.get("WebIdentityToken", [""])[0])
        else:
            raise Refused("MissingAuthenticationToken", "Request is missing Authentication Token")
        return signature

    def _check_rights(self, signature: Signature, action: str) -> None:
        """A role's session calls what its policies name; users call anything, and all call EKS: it names no action."""
        policies = self._simulator.policies_of_session(signature.access_key)
        called = f"{signature.scope.split('/')[2]}:{action}"
        if action and policies is not None and not permits(policies, called):
            code = "UnauthorizedOperation" if called.startswith("ec2:") else "AccessDenied"
            raise Refused(code, f"{caller(signature)} is not authorized to perform: {called}")

    def _check_identity(self, role: str, token: str) -> None:
        """Whether the bearer of a ServiceAccount's token may have the role: moto believes any."""
        issuer = claims_of(token)["iss"]
        provider, key = self._simulator.provider(issuer), self._key_of_issuer(issuer)
        if provider is None or key is None:
            raise Refused("InvalidIdentityToken", f"No OpenIDConnect provider found in your account for {issuer}")
        check_token(token, key, provider)
        policy = self._simulator.trust_policy(role)
        if policy is None:
            raise Refused("AccessDenied", f"Not authorized to perform {ACTION}")
        check_trust(policy, token, provider)

    def _note_creator(self, signature: Signature) -> None:
        """A cluster that has no creator yet was made by this very call: calls are made one by one."""
        for cluster in self._simulator.clusters():
            if not cluster.creator:
                cluster.creator = caller(signature)


def caller(signature: Signature) -> str:
    """The ARN that STS would tell the signer."""
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


def _action(request: Request) -> str:
    """What is called, where the protocol names it: in the target's header, the form or the query."""
    if target := request.headers.get("x-amz-target"):
        return target.rpartition(".")[2]
    form = request.body.decode(errors="replace") if "x-www-form-urlencoded" in request.headers["content-type"] else ""
    return next(iter(parse_qs(form or request.query).get("Action", [])), "")


def _only_reads(request: Request, action: str) -> bool:
    return bool(_READS.match(action)) if action else request.method == "GET"


def _refusal(start_response: StartResponse, request: Request, refusal: Refused) -> list[bytes]:
    """In the form of the protocol that the caller speaks: JSON for EKS, XML for those that have an action."""
    if not _action(request):
        answer = {"__type": refusal.code, "message": str(refusal)}
        return _answer(start_response, "403 Forbidden", answer, ("x-amzn-ErrorType", refusal.code))
    # EC2 alone has its own envelope; its clients read this one, too.
    text = f"<ErrorResponse><Error><Code>{refusal.code}</Code><Message>{refusal}</Message></Error></ErrorResponse>"
    start_response("403 Forbidden", [("Content-Type", "text/xml"), ("Content-Length", str(len(text)))])
    return [text.encode()]


def _answer(start_response: StartResponse, status: str, body: object, *headers: tuple[str, str]) -> list[bytes]:
    content = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(content))), *headers])
    return [content]
