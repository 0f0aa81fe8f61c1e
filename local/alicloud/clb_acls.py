"""CLB: access control lists, which listeners name. Whoever has an account makes them, past the API."""

from __future__ import annotations

from typing import Final

from local.alicloud.account import Account
from local.standin.refusals import Refusal
from local.standin.store import Object

ACL: Final = "access control list"


def add_acl(account: Account) -> str:
    """Put a list into the account: its entries are of no interest."""
    new = account.new_id("acl")
    account.store.put(ACL, new, {"id": new, "tags": {}})
    return new


def acl_of(account: Account, id: str) -> Object:
    """The list with this id."""
    return account.find(ACL, id, Refusal(404, "AclNotExist", f"The specified acl does not exist: {id!r}."))
