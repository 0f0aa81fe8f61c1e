"""STS: keys for a time, for those whom a role trusts."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any, Final

from local.alicloud.account import OWNER, Account, as_text
from local.alicloud.checks import Range, Rule, Text, require
from local.alicloud.keys import lend_key
from local.alicloud.products import STS
from local.identity_tokens import Claims, NotAToken, NotSigned, claims_of, verify_signature
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

ROLE, ISSUER = "role", "oidc provider"

SECONDS: Final = 3600
_RULES: Final[dict[str, Rule]] = {
    "DurationSeconds": Range(900, 43200),
    "RoleSessionName": Text(r"[\w.@\-=]{2,64}", "2 to 64 letters, digits, . @ - _ ="),
}


@STS.action("AssumeRole")
def assume_role(account: Account, arguments: Arguments) -> dict[str, Any]:
    """For a key of the account, if the role trusts the account (`*`) or ECS."""
    require(arguments, _RULES, "InvalidParameter.{}")
    role = _role(account, arguments["RoleArn"])
    if not {"*", "ecs"} & set(role["trusts"]):
        message = "You are not authorized to do this action. You should be authorized by RAM."
        raise Refusal(403, "NoPermission", message)
    return _lent(account, role, arguments)


@STS.action("AssumeRoleWithOIDC")
def assume_role_with_oidc(account: Account, arguments: Arguments) -> dict[str, Any]:
    """For the holder of a token: signed by the provider's key, not expired, for its audience, of a trusted subject."""
    require(arguments, _RULES, "InvalidParameter.{}")
    for name in ("OIDCProviderArn", "OIDCToken", "RoleArn", "RoleSessionName"):
        if not arguments.get(name):
            raise Refusal(400, f"Missing{name}", f"{name} is mandatory for this action.")
    arn = arguments["OIDCProviderArn"]
    missing = Refusal(404, "EntityNotExist.OIDCProvider", f"The OIDCProvider does not exist: {arn}.")
    issuer = account.find(ISSUER, arn, missing)
    claims = _verified(account, issuer, arguments["OIDCToken"])
    role = _role(account, arguments["RoleArn"])
    if not any(fnmatch.fnmatchcase(claims.subject, pattern) for pattern in role["trusts"]):
        message = f"The role {role['arn']} does not trust {claims.subject}."
        raise Refusal(403, "AuthenticationFail.NoPermission", message)
    told = {
        "Issuer": claims.issuer,
        "Subject": claims.subject,
        "ClientIds": ",".join(claims.audiences),
        "ExpirationTime": as_text(claims.expires),
        "VerificationInfo": "Success",
    }
    return {**_lent(account, role, arguments), "OIDCTokenInfo": told}


@STS.action("GetCallerIdentity")
def get_caller_identity(account: Account, arguments: Arguments) -> dict[str, Any]:  # noqa: ARG001
    """The account, whoever of it asks."""
    return {"AccountId": str(OWNER), "Arn": f"acs:ram::{OWNER}:root", "IdentityType": "Account"}


def add_issuer(account: Account, name: str, url: str, public_key: str, audience: str = "sts.aliyuncs.com") -> str:
    """Trust the issuer of OIDC tokens with this key (PEM). Returns the provider's ARN."""
    arn = f"acs:ram::{OWNER}:oidc-provider/{name}"
    account.store.put(ISSUER, arn, {"arn": arn, "url": url, "public_key": public_key, "audiences": [audience]})
    return arn


def add_role(account: Account, name: str, trusts: Sequence[str], allowed: Sequence[str] = ("*",)) -> str:
    """A role for OIDC subjects (globs), `ecs` (machines) or `*`. Returns its ARN. `allowed`: see `keys.add_key`."""
    arn = f"acs:ram::{OWNER}:role/{name}"
    account.store.put(ROLE, arn, {"arn": arn, "name": name, "trusts": list(trusts), "allowed": list(allowed)})
    return arn


def lend(account: Account, role: Object, session: str, seconds: float = SECONDS) -> dict[str, str]:
    """Credentials of a role for a time, as answers write them."""
    name = f"acs:ram::{OWNER}:assumed-role/{role['name']}/{session}"
    key, body = lend_key(account, name, role["allowed"], seconds)
    return {
        "AccessKeyId": key,
        "AccessKeySecret": body["secret"],
        "SecurityToken": body["token"],
        "Expiration": as_text(body["expires"]),
    }


def _lent(account: Account, role: Object, arguments: Arguments) -> dict[str, Any]:
    for name in ("Policy", "ExternalId", "SourceIdentity"):
        if arguments.get(name):
            raise Refusal(501, "NotSimulated", f"the stand-in does not simulate {name}")
    session = arguments["RoleSessionName"]
    name = f"{role['name']}/{session}"
    user = {"Arn": f"acs:ram::{OWNER}:assumed-role/{name}", "AssumedRoleId": f"{role['name']}:{session}"}
    lent = lend(account, role, session, arguments.get("DurationSeconds", SECONDS))
    return {"AssumedRoleUser": user, "Credentials": lent}


def _verified(account: Account, issuer: Object, token: str) -> Claims:
    try:
        claims = claims_of(token)
        verify_signature(token, issuer["public_key"])
    except (NotAToken, NotSigned) as error:
        message = f"This OIDC token is invalid: {error}."
        raise Refusal(400, "AuthenticationFail.OIDCToken.Invalid", message) from None
    if claims.expires <= account.clock():
        raise Refusal(400, "AuthenticationFail.OIDCToken.Expired", "This JsonWebToken is expired.")
    if claims.issuer != issuer["url"]:
        message = f"The token's issuer is not the provider's: {claims.issuer}."
        raise Refusal(400, "AuthenticationFail.OIDCToken.IssuerNotMatch", message)
    if not set(claims.audiences) & set(issuer["audiences"]):
        message = f"The token is for {', '.join(claims.audiences)}, not for {', '.join(issuer['audiences'])}."
        raise Refusal(400, "AuthenticationFail.OIDCToken.AudienceNotMatch", message)
    return claims


def _role(account: Account, arn: str) -> Object:
    return account.find(ROLE, arn, Refusal(404, "EntityNotExist.Role", f"The role not exists: {arn}."))
