"""What is done to Services, nodes and routes on AWS while the daemon is killed or loses answers, and a day's work."""

from __future__ import annotations

from collections.abc import Sequence

from cloud_controller.kube import NODES, SERVICES
from tests.crash.aws_run import AwsRun
from tests.crash.scenarios import DNS, HTTP, HTTPS, SPACE, port
from tests.crash.trial import Scenario


def _a_node(run: AwsRun) -> None:
    """One, with a route."""
    run.node()


def _both(run: AwsRun) -> None:
    """A node and a Service of each kind."""
    run.node()
    run.service(HTTP)
    run.service(HTTPS, kind="classic")


def _both_serve(run: AwsRun) -> bool:
    """Whether all nodes are done, and the two send to all of them."""
    return (
        run.ready()
        and run.serves("8080 TCP")
        and run.serves("8443 TCP", kind="classic", of=1)
        and run.targets_are({*range(len(run.machines))})
    )


def _two_nodes(run: AwsRun) -> None:
    """`_both`, on two nodes."""
    _both(run)
    run.node()


def _node_is_out(run: AwsRun) -> bool:
    """Whether nothing knows the second node any more."""
    machine = run.machines[-1]
    return run.get_node(machine) is None and not run.routes_to(machine) and run.targets_are({0})


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
        _a_node,
        AwsRun.ready,
        lambda run: run.service(HTTP, DNS),
        lambda run: run.serves("8080 TCP", "5353 UDP") and run.targets_are({0}),
    ),
    Scenario(
        "classic load balancer",
        _a_node,
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
        _both,
        _both_serve,
        lambda run: run.delete_service(),
        lambda run: run.get_service() is None,
    ),
    Scenario(
        # AWS itself takes an instance that is terminated out of target groups, but not one that runs on.
        "node removed, its instance runs on",
        _two_nodes,
        _both_serve,
        lambda run: run.kube.delete(NODES, run.machines[-1].name),
        _node_is_out,
    ),
    Scenario("node added", _both, _both_serve, _a_node, _both_serve),
    Scenario(
        "node removed", _two_nodes, _both_serve, lambda run: run.environment.terminate(run.machines[-1]), _node_is_out
    ),
    Scenario(
        "route created",
        lambda run: run.node(pod_cidr=False),
        lambda run: run.ready(),
        lambda run: run.environment.give_pod_cidr(run.machines[0].name),
        lambda run: run.ready() and run.routes_to(run.machines[0]) == 1,
    ),
    Scenario(
        "route deleted",
        _a_node,
        lambda run: run.ready() and run.routes_to(run.machines[0]) == 1,
        lambda run: run.kube.delete(NODES, run.machines[0].name),
        lambda run: not run.routes_to(run.machines[0]),
    ),
)


def _changes(run: AwsRun) -> None:
    """Something for every controller: a changed Service, one that goes, two that come, a node that comes."""
    run.change(ports=[port(9443, 31944), DNS])
    run.kube.delete(SERVICES, run.services[1], SPACE)
    run.service(port(9090, 31090))
    run.service(port(9191, 31191), kind="classic")
    run.node()


def _changes_are_made(run: AwsRun) -> bool:
    return (
        run.serves("9443 TCP", "5353 UDP")
        and run.get_service(1) is None
        and run.serves("9090 TCP", of=2)
        and run.serves("9191 TCP", kind="classic", of=3)
        and run.initialised(run.machines[1])
        and run.targets_are({0, 1})
        and not run.environment.left()["target_groups_alone"]
    )


WORK = Scenario("a day's work", _both, _both_serve, _changes, _changes_are_made)
