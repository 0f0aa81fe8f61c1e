"""As `scenarios`, on AWS: changes to Services, nodes and routes, and their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.kube import NODES
from tests.crash.aws_environment import AwsEnvironment
from tests.crash.cloud_environment import KindName
from tests.crash.cloud_run import CloudRun
from tests.crash.cloud_scenarios import NODE_SCENARIOS, a_node, both, both_serve, node_is_out, two_nodes
from tests.crash.daemon import Json
from tests.crash.scenarios import DNS, HTTP, HTTPS, port
from tests.crash.trial import Scenario


@dataclass
class AwsRun(CloudRun[AwsEnvironment]):
    """One run of one scenario on AWS."""

    def serves(self, *ports: str, kind: KindName = "network", of: int = 0) -> bool:
        """See `CloudRun.serves`. A classic load balancer's listeners are told without their protocol, which is TCP."""
        told = [each.removesuffix(" TCP") if kind == "classic" else each for each in ports]
        return super().serves(*told, kind=kind, of=of)

    def targets(self, lb: Json) -> Sequence[Sequence[str]]:
        """See `CloudRun.targets`."""
        return [lb["instances"]] if lb["type"] == "classic" else super().targets(lb)

    def names_of_load_balancers(self) -> Mapping[str, str]:
        """See `CloudRun.names_of_load_balancers`: names are of the Service's, cut short, and a digest."""
        short = {made.replace("-", ""): index for index, made in enumerate(self.services)}
        return {lb: f"LB-OF-SERVICE-{short.get(lb.split('-')[2])}" for lb in self.environment.load_balancer_names()}


# ---------------------------------------------------------------------------------------------------------- scenarios


def _network(run: AwsRun) -> None:
    run.node()
    run.service(HTTP, HTTPS, DNS)


def _network_serves(run: AwsRun) -> bool:
    return run.ready() and run.serves("8080 TCP", "8443 TCP", "5353 UDP") and run.targets_are({0})


def _with_tls(run: AwsRun) -> None:
    # It is not changed: moto changes no listener that ends TLS.
    run.node()
    tls = {"ssl-cert": run.environment.certificate, "ssl-ports": "8443"}
    run.service(HTTP, HTTPS, DNS, settings=tls)


def _with_tls_serves(run: AwsRun) -> bool:
    return _network_serves(run) and run.load_balancers()[0]["listeners"]["8443 TCP"]["protocol"] == "TLS"


def _attributes_and_checks_are_changed(run: AwsRun) -> bool:
    (lb,) = run.load_balancers()
    return (
        all(each["target_group"]["health_check"]["interval"] == 10 for each in lb["listeners"].values())
        and lb["attributes"]["load_balancing.cross_zone.enabled"] == "true"
    )


def _classic(run: AwsRun) -> None:
    run.node()
    run.service(HTTP, HTTPS, kind="classic")


def _classic_serves(run: AwsRun) -> bool:
    return run.ready() and run.serves("8080 TCP", "8443 TCP", kind="classic") and run.targets_are({0})


def _tls_to_tls(run: AwsRun) -> dict[str, str | None]:
    # To instances, too: moto tells no other protocol than the listener's own, so that the daemon would change one that
    # ends TLS over and over.
    tls = {"ssl-cert": run.environment.certificate, "ssl-ports": "8443", "backend-protocol": "ssl"}
    return {**tls, "connection-idle-timeout": "300"}


AWS_SCENARIOS: Sequence[Scenario[AwsRun]] = (
    Scenario(
        "network load balancer",
        a_node,
        AwsRun.ready,
        lambda run: run.service(HTTP, DNS),
        lambda run: run.serves("8080 TCP", "5353 UDP") and run.targets_are({0}),
    ),
    Scenario(
        "classic load balancer",
        a_node,
        AwsRun.ready,
        lambda run: run.service(HTTP, HTTPS, kind="classic"),
        lambda run: run.serves("8080 TCP", "8443 TCP", kind="classic") and run.targets_are({0}),
    ),
    Scenario(
        "port of a network load balancer changed",
        _network,
        _network_serves,
        lambda run: run.change(ports=[HTTP, port(9443, 31944), DNS]),
        lambda run: run.serves("8080 TCP", "9443 TCP", "5353 UDP"),
    ),
    Scenario(
        "attributes and health checks of a network load balancer with TLS changed",
        _with_tls,
        _with_tls_serves,
        lambda run: run.change(settings={"healthcheck-interval": "10", "cross-zone-load-balancing-enabled": "true"}),
        _attributes_and_checks_are_changed,
    ),
    Scenario(
        "source ranges of a network load balancer changed",
        _network,
        _network_serves,
        lambda run: run.change(loadBalancerSourceRanges=["10.0.0.0/8", "192.0.2.0/24"]),
        lambda run: "192.0.2.0/24" in str(run.environment.left()),
    ),
    Scenario(
        "listeners of a classic load balancer changed",
        _classic,
        _classic_serves,
        lambda run: run.change(settings=_tls_to_tls(run), ports=[HTTPS, port(9090, 31090)]),
        lambda run: run.serves("8443 TCP", "9090 TCP", kind="classic"),
    ),
    Scenario(
        "classic instead of network load balancer",
        lambda run: (run.node(), run.service(HTTP, HTTPS)),
        lambda run: run.ready() and run.serves("8080 TCP", "8443 TCP") and run.targets_are({0}),
        lambda run: run.change(settings={"type": None}),
        lambda run: run.serves("8080 TCP", "8443 TCP", kind="classic") and run.targets_are({0}),
    ),
    Scenario(
        "network instead of classic load balancer",
        _classic,
        _classic_serves,
        lambda run: run.change(settings={"type": "nlb"}),
        lambda run: run.serves("8080 TCP", "8443 TCP") and run.targets_are({0}),
    ),
    Scenario(
        "internal instead of internet-facing",
        lambda run: (run.node(), run.service(HTTP)),
        lambda run: run.ready() and run.serves("8080 TCP") and run.targets_are({0}),
        lambda run: run.change(settings={"internal": "true"}),
        lambda run: run.serves("8080 TCP") and "'internal'" in str(run.environment.left()),
    ),
    Scenario(
        "network load balancer deleted",
        _network,
        _network_serves,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario(
        "classic load balancer deleted",
        _classic,
        _classic_serves,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario(
        "first of two deleted",
        both,
        both_serve,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario(
        # AWS itself takes an instance that is terminated out of target groups, but not one that runs on.
        "node removed, its instance runs on",
        two_nodes,
        both_serve,
        lambda run: run.kube.delete(NODES, run.machines[-1].name),
        node_is_out,
    ),
    *NODE_SCENARIOS,
)
