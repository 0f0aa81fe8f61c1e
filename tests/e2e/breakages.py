"""Ways to break stack `local`, each with what `cloud-controller doctor` must say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.breaking.changes import Break, together
from tests.e2e.breaking.cloud import fault, load_balancer_of_nobody, quota, without_route
from tests.e2e.breaking.manager import (
    NAME,
    another_leader,
    arguments,
    expired_credential,
    image,
    no_lease,
    of_daemon,
    secret,
    without_right,
)
from tests.e2e.breaking.nodes import another_address, another_zone, every_node_excluded, node, on_machine
from tests.e2e.breaking.services import annotated, no_pods, of_service, service

DLB = "service.beta.kubernetes.io/dlb-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakage:
    """One way to break the stack.

    - `found_by`, `subject`: the finding that a report must begin with, by its check and a part of its subject. No other
      check finds a first cause.
    - `follows`: further findings that it must name as consequences, likewise.
    - `rows`: the rows of seed 002 that it breaks; each is a line of a check named above.
    - `touches`: what it changes; two that change the same thing are no pair.
    - `options`: doctor's, where only they show it; such a breakage is no part of a pair either.
    """

    name: str
    apply: Break
    found_by: str
    subject: str = ""
    follows: tuple[tuple[str, str], ...] = ()
    rows: tuple[str, ...]
    touches: str
    options: tuple[str, ...] = ()


_FORBIDDEN = {"kind": "error", "status": 403, "code": "PermissionDenied"}
# An idle CCM reads nothing for half a minute, but the machine of a node that is not ready every five seconds.
_READING = on_machine(ready=False)
_READ = "GET /v1/machines"
# What doctor itself reads of the cloud would take as long, or as many attempts.
_BY_METRICS = (
    "--only=api-server,kubernetes-rights,daemon-health,ccm-pods,leader,metrics,api-errors,api-latency,work-queues"
)

OF_THE_MANAGER: Sequence[Breakage] = (
    Breakage(
        name="no node is selected",
        apply=of_daemon(lambda spec: spec.update(nodeSelector={"nowhere": "here"})),
        found_by="ccm-pods",
        subject=NAME,
        follows=(("leader", NAME),),
        rows=("11.2.1", "11.4.1", "11.2.2", "11.4.4"),
        touches="daemon",
    ),
    Breakage(
        name="the image does not exist",
        apply=of_daemon(image("registry.local/nothing:1")),
        found_by="ccm-pods",
        subject=NAME,
        rows=("11.2.1", "11.4.1"),
        touches="daemon",
    ),
    Breakage(
        name="the Secret does not exist",
        apply=of_daemon(secret("nothing")),
        found_by="ccm-pods",
        subject=NAME,
        rows=("11.2.1", "11.4.1"),
        touches="daemon",
    ),
    Breakage(
        name="an argument is wrong",
        apply=of_daemon(arguments("--controlers=node")),
        found_by="ccm-pods",
        subject=NAME,
        rows=("11.2.1", "11.4.1"),
        touches="daemon",
    ),
    Breakage(
        name="metrics are not served",
        apply=of_daemon(arguments("--secure-port=0")),
        found_by="ccm-pods",
        subject=NAME,
        follows=(("metrics", NAME),),
        rows=("11.2.9", "11.4.1"),
        touches="daemon",
    ),
    Breakage(
        name="another process holds the Lease",
        apply=another_leader,
        found_by="leader",
        subject=NAME,
        rows=("11.2.2", "11.4.4"),
        touches="daemon",
    ),
    Breakage(
        name="the CCM may not renew its Lease",
        apply=no_lease,
        found_by="kubernetes-rights",
        rows=("11.1.6",),
        touches="rights",
    ),
    Breakage(
        name="the CCM may not list Services",
        apply=without_right("services", "list"),
        found_by="kubernetes-rights",
        rows=("11.1.6",),
        touches="rights",
    ),
    Breakage(
        name="a label is changed while the CCM may not patch nodes",
        apply=together(without_right("nodes", "patch"), another_zone),
        found_by="kubernetes-rights",
        follows=(("node-labels", "node/local-workers-0"),),
        rows=("11.1.6", "11.2.5"),
        touches="rights",
    ),
    Breakage(
        name="an address is changed while the CCM may not patch the status of nodes",
        apply=together(without_right("nodes/status", "patch"), another_address),
        found_by="kubernetes-rights",
        follows=(("node-addresses", "node/local-workers-0"),),
        rows=("11.1.6", "10.1.4"),
        touches="rights",
    ),
    Breakage(
        name="the credential has expired",
        apply=expired_credential,
        found_by="credential-expiry",
        rows=("11.4.7",),
        touches="secret",
    ),
)

OF_THE_CLOUD: Sequence[Breakage] = (
    Breakage(
        name="the cloud fails",
        apply=fault("*", kind="error"),
        found_by="cloud-api",
        rows=("11.2.6",),
        touches="faults",
    ),
    Breakage(
        name="the cloud throttles",
        apply=fault("*", kind="throttle"),
        found_by="cloud-api",
        rows=("11.2.6",),
        touches="faults",
    ),
    Breakage(
        name="the credentials are refused",
        apply=fault("*", kind="error", status=401, code="Unauthorized"),
        found_by="cloud-api",
        rows=("11.1.1", "11.2.6"),
        touches="faults",
    ),
    Breakage(
        name="most reads of machines fail",
        apply=together(_READING, fault(_READ, kind="error", probability=0.7)),
        found_by="api-errors",
        rows=("11.4.2",),
        touches="faults",
        options=("--scrape=7s", _BY_METRICS),
    ),
    Breakage(
        name="the cloud answers slowly",
        apply=together(_READING, fault(_READ, kind="latency", seconds=11)),
        found_by="api-latency",
        rows=("11.4.3",),
        touches="faults",
        options=("--scrape=12s", _BY_METRICS),
    ),
    Breakage(
        name="a load balancer may not be created",
        apply=together(fault("POST */load_balancers", **_FORBIDDEN), service("forbidden")),
        found_by="load-balancers",
        subject="default/forbidden",
        rows=("10.1.2", "11.2.6"),
        touches="faults",
    ),
    Breakage(
        name="a load balancer is never finished",
        apply=together(fault("POST /internal/balancer/reports", kind="error"), service("unfinished")),
        found_by="load-balancers",
        subject="default/unfinished",
        rows=("10.1.3", "11.2.6"),
        touches="faults",
    ),
    Breakage(
        name="the quota of load balancers is used up",
        apply=together(quota(load_balancers=2), service("over-quota")),
        found_by="quotas",
        follows=(("load-balancers", "default/over-quota"),),
        rows=("10.1.2", "11.2.6", "11.4.6"),
        touches="quotas",
    ),
    Breakage(
        name="the quota of routes is used up",
        # Of the three routes, a pair may delete one.
        apply=quota(routes_per_table=2),
        found_by="quotas",
        rows=("10.1.5", "11.4.6"),
        touches="quotas",
    ),
    Breakage(
        name="a route cannot be written again",
        apply=together(fault("POST *routes:batch_create", **_FORBIDDEN), without_route),
        found_by="routes",
        subject="route/",
        rows=("10.1.5", "11.2.8"),
        touches="faults",
    ),
    Breakage(
        name="a load balancer belongs to nobody",
        apply=load_balancer_of_nobody,
        found_by="held-actions",
        subject="nobody",
        rows=("10.4",),
        touches="held",
    ),
)

OF_NODES: Sequence[Breakage] = (
    Breakage(
        name="a node has no machine",
        apply=node("ghost", tainted=True),
        found_by="nodes-initialised",
        subject="node/ghost",
        rows=("10.1.1", "11.2.3", "11.4.5"),
        touches="ghost",
    ),
    Breakage(
        name="a node is of another cloud",
        apply=node("guest", provider_id="aws:///zone/i-1"),
        found_by="provider-ids",
        subject="node/guest",
        rows=("11.2.4",),
        touches="guest",
    ),
    Breakage(
        name="a node has no provider ID",
        apply=node("blank"),
        found_by="kubernetes-flags",
        subject="node/blank",
        follows=(("provider-ids", "node/blank"),),
        rows=("10.1.6", "11.2.4"),
        touches="blank",
    ),
    Breakage(
        name="a node's kubelet is too old",
        apply=on_machine(kubelet="v1.28.0"),
        found_by="ccm-version",
        subject="node/still-00000",
        rows=("11.1.5", "11.4.8"),
        touches="simulated machines",
    ),
)

OF_SERVICES: Sequence[Breakage] = (
    Breakage(
        name="an annotation is misspelt",
        apply=service("misspelt", {f"{DLB}shceme": "internal"}),
        found_by="load-balancers",
        subject="default/misspelt",
        rows=("10.1.2", "11.2.6"),
        touches="misspelt",
    ),
    Breakage(
        name="a value is not allowed",
        apply=service("wrong", {f"{DLB}scheduler": "random"}),
        found_by="load-balancers",
        subject="default/wrong",
        rows=("10.1.2", "11.2.6"),
        touches="wrong",
    ),
    Breakage(
        name="no controller serves the class",
        apply=service("unserved", loadBalancerClass="example.com/other"),
        found_by="load-balancers",
        subject="default/unserved",
        rows=("10.1.2", "11.2.6"),
        touches="unserved",
    ),
    Breakage(
        name="the health check asks for the wrong port",
        apply=of_service("web", annotated(f"{DLB}health-check-port", "1")),
        found_by="backend-health",
        subject="default/web",
        rows=("10.1.8", "11.2.7"),
        touches="web",
    ),
    Breakage(
        name="no pod is behind a Service",
        apply=no_pods,
        found_by="backends",
        subject="default/web",
        rows=("10.1.7",),
        touches="web",
    ),
    Breakage(
        name="every node is excluded",
        apply=every_node_excluded,
        found_by="backends",
        subject="default/",
        rows=("10.1.7",),
        touches="node labels",
    ),
    Breakage(
        name="a Service selects nothing",
        apply=service("empty", selector={"app.kubernetes.io/name": "nothing"}),
        found_by="backends",
        subject="default/empty",
        rows=("10.1.7",),
        touches="empty",
    ),
)

BREAKAGES: Sequence[Breakage] = (*OF_THE_MANAGER, *OF_THE_CLOUD, *OF_NODES, *OF_SERVICES)
