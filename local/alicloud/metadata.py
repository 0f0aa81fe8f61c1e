"""The metadata service of a machine: who it is, and keys of its role.

The real one is at 100.100.100.200 and knows the machine by its network. Here it is the machine with the client's
address, or the one that a test names. A token (PUT) is needed for every read, as where a machine requires it.
"""

from __future__ import annotations

import json
import secrets

from local.alicloud.account import OWNER, Account
from local.alicloud.machines import ENI, INSTANCE, VSWITCH, host_name
from local.alicloud.sts import ROLE, lend
from local.http_messages import Answer, Request
from local.standin.standin import StandIn
from local.standin.store import Object

TOKEN_PATH = "/latest/api/token"
DATA_PATH = "/latest/meta-data/"
TOKEN, TTL = "x-aliyun-ecs-metadata-token", "x-aliyun-ecs-metadata-token-ttl-seconds"
_ROLES = "ram/security-credentials/"
_LONGEST = 21600


class Metadata:
    """Answers the requests to a metadata service; None for any other."""

    def __init__(self, standin: StandIn[Account]) -> None:
        self.machine: str | None = None
        """The machine that asks, whatever its address."""
        self._standin = standin
        self._tokens: dict[str, float] = {}

    def __call__(self, request: Request) -> Answer | None:
        if request.path == TOKEN_PATH:
            return self._token(request)
        if not request.path.startswith(DATA_PATH):
            return None
        with self._standin.changing() as account:
            if self._tokens.get(request.headers.get(TOKEN, ""), 0.0) <= account.clock():
                return _text(403, "the header X-aliyun-ecs-metadata-token has no valid token")
            machine = self._asking(account, request.client)
            found = None if machine is None else _read(account, machine, request.path.removeprefix(DATA_PATH))
        return _text(404, "not found") if found is None else _text(200, found)

    def _token(self, request: Request) -> Answer:
        ttl = request.headers.get(TTL, "")
        if request.method != "PUT" or not ttl.isdecimal() or not 1 <= int(ttl) <= _LONGEST:
            return _text(400, f"PUT with {TTL} of 1 to {_LONGEST}")
        token = secrets.token_urlsafe(32)
        self._tokens[token] = self._standin.world.clock() + int(ttl)
        return _text(200, token)

    def _asking(self, account: Account, client: str) -> Object | None:
        if self.machine is not None:
            return account.store.get(INSTANCE, self.machine)
        for eni in account.store.all(ENI):
            if client in eni["addresses"]:
                return account.store.get(INSTANCE, eni["instance"])
        return None


def _read(account: Account, machine: Object, path: str) -> str | None:
    eni = account.store.get(ENI, machine["enis"][0]) or {}
    subnet = account.store.get(VSWITCH, machine["vswitch"]) or {}
    facts = {
        "instance-id": machine["id"],
        "instance/instance-type": machine["type"],
        "hostname": host_name(machine),
        "region-id": account.region,
        "zone-id": machine["zone"],
        "vpc-id": machine["vpc"],
        "vswitch-id": machine["vswitch"],
        "vswitch-cidr-block": subnet.get("cidr", ""),
        "private-ipv4": eni.get("addresses", [""])[0],
        "owner-account-id": str(OWNER),
    }
    if not path.startswith(_ROLES):
        return facts.get(path)
    role = account.store.get(ROLE, f"acs:ram::{OWNER}:role/{machine['role']}")
    if role is None or "ecs" not in role["trusts"]:
        return None
    asked = path.removeprefix(_ROLES)
    if asked not in ("", role["name"]):
        return None
    if not asked:
        return str(role["name"])
    return json.dumps({**lend(account, role, machine["id"]), "LastUpdated": account.now(), "Code": "Success"})


def _text(status: int, text: str) -> Answer:
    return Answer(status, text.encode(), {"content-type": "text/plain"})
