"""The keys that sign requests: an account's own, and those that STS gives for a time."""

from __future__ import annotations

import fnmatch
import secrets
from collections.abc import Sequence
from typing import Final

from local.alicloud.account import ACCESS_KEY, OWNER, SECRET, Account
from local.standin.refusals import Refusal
from local.standin.store import Object

KEY: Final = "access key"


def add_key(account: Account, id: str, secret: str, name: str, allowed: Sequence[str] = ("*",)) -> None:
    """A key that does not expire. `allowed` are globs such as `slb:Describe*`."""
    body = {"secret": secret, "token": None, "expires": None, "name": name, "allowed": list(allowed)}
    account.store.put(KEY, id, body)


def add_administrator(account: Account) -> None:
    """The key that may do everything."""
    if account.store.get(KEY, ACCESS_KEY) is None:
        add_key(account, ACCESS_KEY, SECRET, f"acs:ram::{OWNER}:root")


def lend_key(account: Account, name: str, allowed: Sequence[str], seconds: float) -> tuple[str, Object]:
    """A key with a session token, and its id."""
    key = f"STS.{secrets.token_hex(12)}"
    body = {
        "secret": secrets.token_urlsafe(32),
        "token": secrets.token_urlsafe(64),
        "expires": account.clock() + seconds,
        "name": name,
        "allowed": list(allowed),
    }
    account.store.put(KEY, key, body)
    return key, body


def key_of(account: Account, id: str, token: str | None) -> Object:
    """The key; raises Refusal unless the session token is its own and has not expired."""
    key = account.store.get(KEY, id)
    if key is None:
        raise Refusal(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
    if key["token"] is None:
        return key
    if token is None:
        raise Refusal(400, "MissingSecurityToken", "SecurityToken is mandatory for this action.")
    if token != key["token"]:
        message = "Specified SecurityToken is mismatch with the AccessKey."
        raise Refusal(400, "InvalidSecurityToken.MismatchWithAccessKey", message)
    if key["expires"] <= account.clock():
        raise Refusal(400, "InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")
    return key


def require_allowed(key: Object, product: str, action: str) -> None:
    """Raise Refusal unless the key's policies allow the action."""
    if (product, action) == ("sts", "GetCallerIdentity"):
        return  # The cloud tells every key whose it is.
    if not any(fnmatch.fnmatchcase(f"{product}:{action}", pattern) for pattern in key["allowed"]):
        message = f"User not authorized to operate on the specified resource: {product}:{action}."
        raise Refusal(403, "NoPermission" if product == "sts" else "Forbidden.RAM", message)
