"""Rule: a public load balancer's port 443 says who ends TLS, and HTTP beside HTTPS is redirected."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cloud_controller.load_balancers.terms import Asked
from policy.checklist.asked import Wanted, of_wanted
from policy.checklist.load_balancers import is_internal
from policy.rules import ADVISORY, MEDIUM, Stack, StackRule
from policy.subjects import Subject
from policy.unknowns import Problem, problem_if

_IN_CLEAR = ("", "http", "ws", "kubernetes.io/h2c", "kubernetes.io/ws")
"""Values of `appProtocol` that say nothing of TLS, or that there is none."""


def problems(stack: Stack) -> Iterator[tuple[Subject, Problem]]:
    """Ports of public load balancers that may carry passwords in clear."""
    yield from of_wanted(stack, _problems)


def _problems(wanted: Wanted) -> Iterator[Problem]:
    conditions = [partial(_is_public, wanted)]
    for port in wanted.ports():
        if port.item["protocol"] == "TCP" and (port.item["port"] == 443 or port.item.get("name") == "https"):
            yield partial(problem_if, conditions, partial(_ends_nowhere, wanted, port))
    yield partial(problem_if, conditions, partial(_open_http, wanted))


def _is_public(wanted: Wanted) -> bool:
    return not is_internal(wanted.service.props, wanted.cloud)


def _ends_nowhere(wanted: Wanted, port: Asked) -> str | None:
    if str(port.item.get("appProtocol") or "").lower() not in _IN_CLEAR or wanted.cloud.balancers.ends_tls(port):
        return None
    return (
        f"port {port.item['port']} is public, and nothing says who ends TLS there: a certificate of the load balancer, "
        "or appProtocol: https if the pods do"
    )


def _open_http(wanted: Wanted) -> str | None:
    found = wanted.cloud.balancers.unredirected(wanted.asked)
    return f"HTTP is served beside HTTPS and not redirected: {found}" if found else None


PUBLIC_PORTS_ARE_ENCRYPTED = StackRule(
    "lb-service-encrypt-https",
    problems,
    why=(
        "Clients of port 443 expect TLS. A load balancer that passes the port on to pods that serve plain HTTP shows "
        "passwords to everyone on the way. The Service must say that TLS ends at the load balancer, or at the pods."
    ),
    level=ADVISORY,
    title="Public HTTPS ports are encrypted",
    severity=MEDIUM,
    sections="4.3, 4.4, 5.3",
    judges=(
        "A TCP port 443, or one named `https`, of a public load balancer whose cloud is known has TLS at the load "
        "balancer, by its cloud's annotations for certificates, or an `appProtocol` that the pods answer with TLS, "
        "such as `https`. Where the load balancer can redirect HTTP, an HTTP port beside an HTTPS port is redirected. "
        "UDP is left alone: QUIC is always encrypted."
    ),
    unseen="Pods that serve plain HTTP although appProtocol says https; ports with other numbers and names.",
    tags=["network", "security"],
    remedy=(
        "Set the annotation for a certificate, or `appProtocol: https` at a port that pods serve with TLS. Redirect "
        "HTTP by the annotation that the message names."
    ),
    url="https://kubernetes.io/docs/concepts/services-networking/service/#application-protocol",
)
