"""What the CCM's pods serve over HTTPS, asked through the API server's proxy: from anywhere, with the caller's rights.

The proxy does not pass the caller's token on, so a pod that requires one answers 401.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import ApiError, Object, key, name
from cloud_controller.manifests import SECURE_PORT


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` 0: nothing answers; `text` then says why."""

    status: int
    text: str


def serving(seen: Seen) -> Iterator[Object]:
    """The CCM's pods whose containers run. Raises Unreadable if they serve nothing that others reach."""
    if port(seen) == 0:
        raise Unreadable("the CCM serves no HTTP: --secure-port=0")
    address = seen.argument("--bind-address")
    if is_loopback(address):
        raise Unreadable(f"the CCM serves HTTP on its machine only: --bind-address={address}")
    yield from filter(is_up, seen.running_pods())


def is_up(pod: Object) -> bool:
    """Whether the pod is on a node and its containers run, ready or not."""
    states = [each.get("state") or {} for each in pod["status"].get("containerStatuses") or ()]
    return pod["status"].get("phase") == "Running" and not any("waiting" in s or "terminated" in s for s in states)


def is_ready(pod: Object) -> bool:
    """Whether the pod has condition Ready."""
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def port(seen: Seen) -> int:
    """Where the CCM serves; 0: nowhere."""
    given = seen.argument("--secure-port", str(SECURE_PORT))
    return int(given) if given.isdecimal() else SECURE_PORT


def ask(seen: Seen, pod: Object, path: str, **query: str) -> Answer:
    """The pod's answer to a GET. Raises Unreadable if the API server does not ask it, as without right pods/proxy, or
    does not reach it although the pod is ready."""
    try:
        return Answer(200, seen.raw(_proxied(seen, pod, path), **query).decode(errors="replace"))
    except Unreadable as unreadable:
        if not isinstance(unreadable.__cause__, ApiError):
            raise
        return _refusal(pod, unreadable.__cause__)


def ask_anew(seen: Seen, pod: Object, path: str) -> Answer:
    """The pod's answer now, whatever it answered earlier; otherwise as `ask`."""
    try:
        return Answer(200, seen.kube().raw("GET", _proxied(seen, pod, path)).decode(errors="replace"))
    except ApiError as error:
        return _refusal(pod, error)


def _proxied(seen: Seen, pod: Object, path: str) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/https:{name(pod)}:{port(seen)}/proxy{path}"


def _refusal(pod: Object, error: ApiError) -> Answer:
    # The API server's own refusals are about the object; those of the pod are not.
    if error.status == 0 or error.details.get("kind") == "pods":
        raise Unreadable(str(error)) from error
    if error.reason != "ServiceUnavailable" or "error trying to reach service" not in error.message:
        return Answer(error.status, error.body.decode(errors="replace"))
    if is_ready(pod):
        # Its kubelet reaches it: what is in the way is between the API server and the pod.
        raise Unreadable(f"the API server does not reach pod {key(pod)}, which is ready: {error}") from error
    return Answer(0, error.message)


def is_loopback(address: str) -> bool:
    """Whether only the machine itself reaches this address."""
    try:
        return ip_address(address).is_loopback
    except ValueError:  # A variable: the pod's address.
        return False
