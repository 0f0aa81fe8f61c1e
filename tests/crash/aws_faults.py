"""What AWS does to those who call it, in AWS's own forms: the proxy answers in moto's stead."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlencode
from urllib.request import Request, urlopen
from xml.etree import ElementTree as ET

from benchmarks.aws.account import KEY, REGION
from benchmarks.aws.moto_gaps import corrected
from benchmarks.aws.proxy import operation
from tests.crash.daemon import Daemon, until
from tests.crash.proxy import Refusal
from tests.crash.under_fault import Fault

_ACCESS_KEY = re.compile(r"Credential=(?P<key>[^/]+)/")
_SIGNED_BY = "-signed-by"


@dataclass(frozen=True)
class Asked:
    """One call: `name` as in `ec2 CreateRoute`, its form, and the access key that signed it ("": nobody)."""

    name: str
    form: Mapping[str, str]
    key: str

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return not self.name.partition(" ")[2].startswith(("Describe", "Get", "List"))

    @classmethod
    def of(cls, path: str) -> Asked:
        """From a path that `named` has made."""
        name, _, query = path.partition("?")
        form = dict(parse_qsl(query))
        return cls(name, form, form.pop(_SIGNED_BY, ""))


def named(_path: str, headers: Message, body: bytes) -> str:
    """A proxy's naming: operation, form and access key. What is recorded of it ends before the form."""
    key = _ACCESS_KEY.search(headers.get("Authorization", ""))
    return f"{operation(headers, body)}?{body.decode()}&{_SIGNED_BY}={key['key'] if key else ''}"


def mended_by_name(path: str, answer: bytes) -> bytes:
    """A proxy's mending where paths have forms."""
    return corrected(path.partition("?")[0], answer)


def error(name: str, status: int, code: str, message: str = "refused by the test") -> Refusal:
    """AWS's error answer to the call of this name, in the form that its service has."""
    said = f"<Code>{code}</Code><Message>{message}</Message>"
    if name.startswith("ec2 "):
        body = f"<Response><Errors><Error>{said}</Error></Errors><RequestID>test</RequestID></Response>"
    else:
        body = f"<ErrorResponse><Error><Type>Sender</Type>{said}</Error><RequestId>test</RequestId></ErrorResponse>"
    return Refusal(status, body.encode(), "text/xml")


Decide = Callable[[Asked], Refusal | None]


@contextmanager
def answering(daemon: Daemon, decide: Decide) -> Generator[Counter[str], None, None]:
    """The proxy answers what is decided; yields how many of each operation it has."""
    given: Counter[str] = Counter()

    def refuse(_method: str, path: str) -> Refusal | None:
        asked = Asked.of(path)
        answer = decide(asked)
        if answer is not None:
            given[asked.name] += 1
        return answer

    daemon.cloud.refuse = refuse
    try:
        yield given
    finally:
        daemon.cloud.refuse = None


# -------------------------------------------------------------------------------------------------------------- faults


_LEAST = 3
"""Calls that a fault must have met: with fewer, the work was done without it."""


def answers(make: Callable[[], Decide]) -> Fault[Daemon]:
    """What is decided is answered until the work is done."""

    def fault(daemon: Daemon) -> Generator[None, None, None]:
        with answering(daemon, make()) as given:
            yield
            yield
        assert given.total() >= _LEAST, f"hardly anything was refused: {given}"

    return fault


def throttled() -> Decide:
    """Half of the calls are one too many."""
    chance = Random(1)

    def decide(asked: Asked) -> Refusal | None:
        if chance.random() >= 0.5:
            return None
        if asked.name.startswith("ec2 "):
            return error(asked.name, 503, "RequestLimitExceeded", "Request limit exceeded.")
        return error(asked.name, 400, "Throttling", "Rate exceeded")

    return decide


def failing() -> Decide:
    """Three of ten calls end in an error of AWS's own."""
    chance = Random(2)

    def decide(asked: Asked) -> Refusal | None:
        if chance.random() >= 0.3:
            return None
        ec2 = asked.name.startswith("ec2 ")
        if chance.random() < 0.5:
            return error(asked.name, 500, "InternalError" if ec2 else "InternalFailure")
        return error(asked.name, 503, "Unavailable" if ec2 else "ServiceUnavailable")

    return decide


def slow(seconds: float) -> Fault[Daemon]:
    """Each call takes this long."""

    def fault(daemon: Daemon) -> Generator[None, None, None]:
        held: Counter[str] = Counter()

        def decide(asked: Asked) -> None:
            held[asked.name] += 1
            time.sleep(seconds)  # The fault itself, not a wait for something.

        with answering(daemon, decide):
            yield
            yield
        assert held.total() >= _LEAST, f"hardly anything was slow: {held}"

    return fault


_IN_USE = {
    "ec2 DeleteSecurityGroup": ("GroupId", "DependencyViolation", "resource {} has a dependent object"),
    "elbv2 DeleteTargetGroup": ("TargetGroupArn", "ResourceInUse", "Target group '{}' is currently in use"),
}
"""What AWS calls in use for a while after the load balancer, or listener, that used it has gone."""


def in_use(seconds: float) -> Decide:
    """Security groups and target groups can be deleted only so long after the first try."""
    first: dict[str, float] = {}

    def decide(asked: Asked) -> Refusal | None:
        if asked.name not in _IN_USE:
            return None
        argument, code, message = _IN_USE[asked.name]
        which = asked.form[argument]
        if time.monotonic() >= first.setdefault(which, time.monotonic()) + seconds:
            return None
        return error(asked.name, 400, code, message.format(which))

    return decide


# ---------------------------------------------------------------------------------------------------------------- lag


@dataclass(frozen=True)
class _List:
    """A list of AWS's: the API's version, where the objects are in its answer, and which part is their id."""

    version: str
    objects: str
    id: str


_LISTS = {
    "elbv2 DescribeLoadBalancers": _List("2015-12-01", "LoadBalancers", "LoadBalancerArn"),
    "elbv2 DescribeTargetGroups": _List("2015-12-01", "TargetGroups", "TargetGroupArn"),
    "elb DescribeLoadBalancers": _List("2012-06-01", "LoadBalancerDescriptions", "LoadBalancerName"),
    "ec2 DescribeSecurityGroups": _List("2016-11-15", "securityGroupInfo", "groupId"),
    "ec2 DescribeRouteTables": _List("2016-11-15", "routeTableSet", "routeTableId"),
    "ec2 DescribeInstances": _List("2016-11-15", "reservationSet", "reservationId"),
}
_OF_ALL = frozenset({"Action", "Version", "PageSize", "MaxResults"})
"""The arguments of who asks for a whole list."""
_LOOK = 0.25
"""Seconds between two copies."""

_Copy = Mapping[str, Mapping[str, Any]]
"""The objects of every list, by the list's name and their ids."""


class Lag:
    """Lists are answered from copies that are some seconds old, and what was just made is unknown to a next call.

    What was made since is missing, what was changed is as it was, what was deleted is there.
    """

    def __init__(self, endpoint: str, seconds: float) -> None:
        self._endpoint = endpoint
        self._seconds = seconds
        self._copies: deque[tuple[float, _Copy]] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="copies", daemon=True)
        self._opened: set[str] = set()
        self._made: dict[str, tuple[Mapping[str, str], bytes]] = {}
        self.differed = 0

    def __enter__(self) -> Lag:
        self._thread.start()
        until(lambda: self._copy() is not None, "there is a copy that is old enough")
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def decide(self, asked: Asked) -> Refusal | None:
        """The errors."""
        group = asked.form.get("GroupId", "")
        if asked.name == "ec2 AuthorizeSecurityGroupIngress" and group not in self._opened:
            self._opened.add(group)
            if group not in self._old("ec2 DescribeSecurityGroups"):
                message = f"The security group '{group}' does not exist"
                return error(asked.name, 400, "InvalidGroup.NotFound", message)
        name = asked.form.get("Name", "")
        if asked.name == "elbv2 CreateLoadBalancer" and name in _names(self._now("elbv2 DescribeLoadBalancers")):
            # moto makes a second one. AWS never does: the same call once more has the same answer.
            form, answer = self._made.get(name, ({}, b""))
            if form == asked.form:
                return Refusal(200, answer, "text/xml")
            return error(asked.name, 400, "DuplicateLoadBalancerName", f"A load balancer named {name} exists")
        machine = asked.form.get("InstanceId.1")
        if asked.name == "ec2 DescribeInstances" and machine and machine not in _machines(self._old(asked.name)):
            message = f"The instance ID '{machine}' does not exist"
            return error(asked.name, 400, "InvalidInstanceID.NotFound", message)
        wanted = asked.form.get("Names.member.1", asked.form.get("LoadBalancerNames.member.1"))
        if wanted is not None and asked.name in _LISTS and wanted not in _names(self._old(asked.name)):
            what = "TargetGroup" if "TargetGroups" in asked.name else "LoadBalancer"
            return error(asked.name, 400, f"{what}NotFound", f"There is no {what} {wanted}")
        return None

    def mend(self, path: str, answer: bytes) -> bytes:
        """The proxy's mending: a list as it was."""
        asked = Asked.of(path)
        answer = corrected(asked.name, answer)
        listed = _LISTS.get(asked.name)
        if asked.name == "elbv2 CreateLoadBalancer":
            self._made[asked.form["Name"]] = asked.form, answer
        if listed is None:
            return answer
        old, root = self._old(asked.name), ET.fromstring(answer)
        parent = _objects(root, listed)
        if parent is None:
            return answer
        found = {_id(each, listed): each for each in parent}
        whole = asked.form.keys() <= _OF_ALL
        shown = {each: old[each] for each in old if each in found or whole}
        self.differed += shown.keys() != found.keys()
        parent[:] = shown.values()
        return ET.tostring(root, default_namespace=root.tag.partition("}")[0].lstrip("{"))

    def _old(self, name: str) -> Mapping[str, Any]:
        copy = self._copy()
        assert copy is not None
        return copy[name]

    def _copy(self) -> _Copy | None:
        then = time.monotonic() - self._seconds
        return next((copy for at, copy in reversed(self._copies.copy()) if at <= then), None)

    def _run(self) -> None:
        while not self._over.wait(_LOOK):
            at = time.monotonic()
            # The next copy is soon.
            with suppress(OSError, HTTPException, ET.ParseError):
                self._copies.append((at, {name: self._now(name) for name in _LISTS}))

    def _now(self, name: str) -> Mapping[str, Any]:
        listed, (service, _, action) = _LISTS[name], name.partition(" ")
        signed_as = "ec2" if service == "ec2" else "elasticloadbalancing"
        credential = f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/{signed_as}/aws4_request"
        form = urlencode({"Action": action, "Version": listed.version}).encode()
        with urlopen(Request(self._endpoint, form, {"Authorization": credential})) as answer:
            parent = _objects(ET.fromstring(corrected(name, answer.read())), listed)
        return {} if parent is None else {_id(each, listed): each for each in parent}


def lists_lag(endpoint: str, seconds: float) -> Fault[Daemon]:
    """See `Lag`."""

    def fault(daemon: Daemon) -> Generator[None, None, None]:
        with Lag(endpoint, seconds) as lag, answering(daemon, lag.decide):
            daemon.cloud.mending = lag.mend
            try:
                yield
                yield
            finally:
                daemon.cloud.mending = mended_by_name
            assert lag.differed, "no list was asked for while it lagged"

    return fault


def _objects(root: Any, listed: _List) -> Any:
    return next((each for each in root.iter() if _local(each) == listed.objects), None)


def _id(element: Any, listed: _List) -> str:
    return str(next(part.text for part in element if _local(part) == listed.id))


def _names(objects: Mapping[str, Any]) -> set[str]:
    parts = (part for each in objects.values() for part in each)
    return {str(part.text) for part in parts if _local(part) in ("LoadBalancerName", "TargetGroupName", "groupName")}


def _machines(reservations: Mapping[str, Any]) -> set[str]:
    parts = (part for each in reservations.values() for part in each.iter())
    return {str(part.text) for part in parts if _local(part) == "instanceId"}


def _local(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
