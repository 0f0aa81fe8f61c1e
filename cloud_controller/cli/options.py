"""The command line's options, and what they mean; names and defaults are upstream's where they fit."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any

from cloud_controller import clouds
from cloud_controller.binding import NOTHING
from cloud_controller.cli import config_file as cli_config_file
from cloud_controller.cli import upstream as cli_upstream
from cloud_controller.cli import values
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controller_names import controllers
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.daemon.leader import LeaseTimes
from cloud_controller.daemon.options import ManagerOptions, Serving
from cloud_controller.kube import Kube
from cloud_controller.kube.rate_limit import RateLimit
from cloud_controller.load_balancers.nameable import KINDS, OPTION, Nameable
from cloud_controller.load_balancers.sharing import SHARED_WITH_TAG, Sharing

_BURST = 30
_ALWAYS_ALLOWED = ["/healthz", "/readyz", "/livez"]

_log = logging.getLogger(__name__)


def parse(
    parser: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """The options of the line, over those of the file that it names, over the defaults; contradictions are refused.

    Raises `InvalidConfiguration`; what the line itself has wrong ends the process with 2, as argparse does.
    """
    options = parser.parse_args(arguments)
    if getattr(options, "config", None):
        path = Path(options.config)
        of_file = cli_config_file.read(path, commands, options.command_name)
        commands[options.command_name].set_defaults(**of_file)
        options = parser.parse_args(arguments)
    if options.command_name in commands:
        if not options.cloud:
            commands[options.command_name].error("--cloud is missing, on the line and in --config")
        _refuse_contradictions(options)
    return options


def add_common(parser: argparse.ArgumentParser) -> None:
    """What every command needs to reach the cloud and the cluster."""
    parser.add_argument("--config", metavar="FILE", help="YAML: these options without their dashes; the line wins")
    reach = parser.add_argument_group("cloud and cluster")
    reach.add_argument(
        "--cloud", "--cloud-provider", metavar="NAME", help=f"the cloud; known here: {', '.join(clouds.names())}"
    )
    reach.add_argument("--cloud-config", metavar="FILE", help="the cloud's configuration and credentials")
    add_cluster(reach)
    reach.add_argument(
        "--moved-from-cluster",
        metavar="UID",
        help="take over what was made in the cloud for the Kubernetes cluster with this UID (of its namespace "
        f"kube-system); {NOTHING}: start although nothing in the cloud belongs to an object of this cluster",
    )
    reach.add_argument(
        "--kube-api-qps", type=values.rate, default=0.0, metavar="N", help="calls a second; 0, the default: no limit"
    )
    reach.add_argument(
        "--kube-api-burst", type=values.count, metavar="N", help=f"calls at once under that limit; default: {_BURST}"
    )
    what = parser.add_argument_group("controllers")
    what.add_argument(
        "--controllers",
        type=values.words,
        default=["*"],
        metavar="LIST",
        help="names with commas between them, '*' for all, '-NAME' to take one of them out; default: *",
    )
    what.add_argument("--cluster-name", default="kubernetes", metavar="NAME", help="for people; default: kubernetes")
    what.add_argument("--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="the pods' ranges; route needs them")
    what.add_argument(
        "--configure-cloud-routes", **_FLAG | {"default": True}, help="false: controller route does not run"
    )
    what.add_argument(
        "--delete-foreign-routes",
        **_FLAG,
        help="also remove routes inside the pods' ranges that are not this cluster's; default: report them",
    )
    what.add_argument(
        "--backend-nodes",
        choices=("eligible", "ready-workers"),
        default="eligible",
        help="which nodes load balancers send to: as upstream (KEP-3458), or ready, schedulable workers only",
    )
    what.add_argument(
        "--require-load-balancer-class",
        **_FLAG,
        help="leave Services that name no loadBalancerClass alone: another controller takes them, as on EKS",
    )
    what.add_argument(
        "--shared-load-balancers",
        choices=[each.value for each in Sharing],
        default=Sharing.TAGGED.value,
        help="which load balancers annotations may name: off: none; tagged: those of Services in the same namespace, "
        f"and those with the tag {SHARED_WITH_TAG}; any: every one; default: tagged",
    )
    what.add_argument(
        OPTION,
        type=values.nameable,
        default=[],
        metavar="LIST",
        help="which resources of other people annotations may name: KIND=PATTERN and KIND=tag:KEY=VALUE, separated by "
        f"commas, or any; a kind without an entry is not limited; kinds: {', '.join(KINDS)}",
    )
    add_logs(parser)
    cli_upstream.add(parser)


def add_logs(parser: argparse.ArgumentParser) -> None:
    """The options of logging."""
    logging = parser.add_argument_group("logs")
    logging.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="default: info")
    logging.add_argument("-v", "--v", type=values.verbosity, metavar="N", help="klog's levels: from 4 on debug")
    logging.add_argument("--logging-format", choices=("text", "json"), default="text", help="default: text")


def add_cleanup(parser: argparse.ArgumentParser) -> None:
    """What `cleanup` needs: no cluster, but its id twice, so that a cloud config alone deletes nothing."""
    parser.add_argument("--cloud", required=True, metavar="NAME", help=f"known here: {', '.join(clouds.names())}")
    parser.add_argument("--cloud-config", required=True, metavar="FILE", help="the cloud's configuration, credentials")
    parser.add_argument(
        "--cluster-id", required=True, metavar="ID", help="of the cluster that is gone; the cloud config must agree"
    )
    parser.add_argument(
        "--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="the pods' ranges; without them pod routes are kept"
    )
    add_logs(parser)


def add_outcome(parser: argparse.ArgumentParser) -> None:
    """How the plan is approved, how long applying it may take, and how the outcome is shown."""
    parser.add_argument("--output", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--deadline", type=values.duration, default=300.0, metavar="TIME", help="for all of it; default: 300s"
    )


def add_cluster(parser: argparse._ActionsContainer) -> None:
    """How the cluster is reached."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="default: the service account of the pod")
    parser.add_argument("--context", metavar="NAME", help="of the kubeconfig; default: its current context")


def add_lease(parser: argparse.ArgumentParser) -> None:
    """Which of several processes works."""
    leader = parser.add_argument_group("leader election")
    leader.add_argument(
        "--leader-elect", **_FLAG | {"default": True}, help="work only while holding the lease; default: true"
    )
    add_lease_name(leader)
    for name, default, text in _LEASE:
        leader.add_argument(
            name, type=values.duration, default=default, metavar="TIME", help=f"{text}; default: {default:g}s"
        )


def add_lease_name(leader: argparse._ActionsContainer) -> None:
    """Where the Lease is, which also carries the confirmations of held actions."""
    leader.add_argument(
        "--leader-elect-resource-namespace",
        type=values.namespace,
        default="kube-system",
        metavar="NS",
        help="default: kube-system",
    )
    leader.add_argument(
        "--leader-elect-resource-name",
        type=values.object_name,
        default="cloud-controller-manager",
        metavar="NAME",
        help="default: cloud-controller-manager",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """What the daemon needs besides."""
    parser.add_argument("--dry-run", **_FLAG, help="plan and log, write nothing: no object, no Lease, no event")
    periods = parser.add_argument_group("periods", "such as 500ms, 5s, 5m or 12h")
    for name, default, text in _PERIODS:
        periods.add_argument(
            name, type=values.duration, default=default, metavar="TIME", help=f"{text}; default: {default:g}s"
        )
    periods.add_argument(
        "--node-deletion-grace-period",
        type=values.duration_or_none,
        default=0.0,
        metavar="TIME",
        help="for so long a machine must be missing before its node is deleted; 0, the default: as soon as it is sure",
    )
    periods.add_argument(
        "--service-resync-period",
        type=values.duration_or_none,
        default=300.0,
        metavar="TIME",
        help="how often all load balancers are read again and what others changed is mended; 0: never; default: 300s",
    )
    workers = parser.add_argument_group("workers")
    workers.add_argument("--concurrent-service-syncs", type=values.count, default=3, metavar="N", help="default: 3")
    workers.add_argument(
        "--concurrent-node-syncs", type=values.count, default=16, metavar="N", help="writes at once; default: 16"
    )
    workers.add_argument(
        "--concurrent-node-status-updates",
        type=values.count_or_none,
        default=0,
        metavar="N",
        help="writes at once when all nodes are compared; 0, the default: as --concurrent-node-syncs",
    )
    add_lease(parser)
    serving = parser.add_argument_group("serving", "/healthz, /livez, /readyz, /metrics and /configz, over TLS")
    serving.add_argument(
        "--bind-address", type=values.address, default="127.0.0.1", metavar="IP", help="default: 127.0.0.1"
    )
    serving.add_argument(
        "--secure-port", type=values.port, default=10258, metavar="PORT", help="0: none; default: 10258"
    )
    serving.add_argument("--tls-cert-file", metavar="FILE", help="default: a self-signed one is made in memory")
    serving.add_argument("--tls-private-key-file", metavar="FILE", help="goes with --tls-cert-file")
    serving.add_argument(
        "--authentication-kubeconfig", metavar="FILE", help="for TokenReviews; default: as everything else"
    )
    serving.add_argument(
        "--authorization-kubeconfig", metavar="FILE", help="for SubjectAccessReviews; default: as everything else"
    )
    serving.add_argument(
        "--authorization-always-allow-paths",
        type=values.paths,
        default=_ALWAYS_ALLOWED,
        metavar="LIST",
        help=f"served to everybody; default: {','.join(_ALWAYS_ALLOWED)}",
    )


def log_level(options: argparse.Namespace) -> str:
    """The level that the options ask for."""
    if options.v is not None:
        return "debug" if options.v >= 4 else "info"
    return str(options.log_level or "info")


def kubernetes(options: argparse.Namespace) -> Kube:
    """The client that the options describe. Raises `KubeconfigError`."""
    limit = None
    if getattr(options, "kube_api_qps", 0) > 0:
        limit = RateLimit(options.kube_api_qps, options.kube_api_burst or _BURST)
    if options.kubeconfig:
        return Kube.from_file(Path(options.kubeconfig), context=options.context, rate_limit=limit)
    return Kube.in_cluster(rate_limit=limit)


def chosen(options: argparse.Namespace, not_offered: Collection[str] = ()) -> tuple[str, ...]:
    """The controllers that the options choose, `*` without `not_offered`. Raises `InvalidConfiguration`."""
    names = controllers(options.controllers, not_offered)
    if options.configure_cloud_routes or "route" not in names:
        return names
    if "*" not in options.controllers:
        raise InvalidConfiguration("configure-cloud-routes", "false, but --controllers names route")
    return controllers([*options.controllers, "-route"], not_offered)


def manager_options(options: argparse.Namespace, not_offered: Collection[str] = ()) -> ManagerOptions:
    """The daemon's options. Raises `InvalidConfiguration`, `KubeconfigError`."""
    names = chosen(options, not_offered)
    pods = cluster_ranges(options)
    return ManagerOptions(
        controllers=names,
        route=route_options(options, pods) if "route" in names else None,
        service=service_options(options, pods),
        dry_run=options.dry_run,
        moved_from_cluster=options.moved_from_cluster,
        leader_elect=options.leader_elect,
        lease_namespace=options.leader_elect_resource_namespace,
        lease_name=options.leader_elect_resource_name,
        lease_times=lease_times(options),
        serving=_serving(options) if options.secure_port else None,
        node_monitor_period=options.node_monitor_period,
        node_deletion_grace_period=options.node_deletion_grace_period,
        node_status_update_frequency=options.node_status_update_frequency,
        route_reconciliation_period=options.route_reconciliation_period,
        workers=options.concurrent_node_syncs,
        status_workers=options.concurrent_node_status_updates or options.concurrent_node_syncs,
    )


def lease_times(options: argparse.Namespace) -> LeaseTimes:
    """Raises `InvalidConfiguration` for times that do not go together."""
    return LeaseTimes(
        options.leader_elect_lease_duration,
        options.leader_elect_renew_deadline,
        options.leader_elect_retry_period,
    )


def service_options(options: argparse.Namespace, pods: tuple[str, ...]) -> ServiceOptions:
    """The service controller's options; a command that runs no daemon has no workers to set."""
    given = vars(options)
    return ServiceOptions(
        workers=given.get("concurrent_service_syncs", 1),
        resync=given.get("service_resync_period", 0.0),
        backend_nodes=options.backend_nodes,
        without_class=not options.require_load_balancer_class,
        pod_ranges=pods,
        sharing=Sharing(options.shared_load_balancers),
        nameable=Nameable.parse(options.annotations_may_name),
    )


def cluster_ranges(options: argparse.Namespace) -> tuple[str, ...]:
    """The pods' ranges; as upstream, bits beyond the prefix are cut off. Raises `InvalidConfiguration`."""
    found: list[str] = []
    for given in filter(None, (part.strip() for part in options.cluster_cidr.split(","))):
        try:
            network = str(ip_network(given, strict=False))
        except ValueError as error:
            why = f"{given!r} is not a network: {error}"
            raise InvalidConfiguration("cluster-cidr", why, "for example 10.20.0.0/16") from None
        if network != str(ip_interface(given)):
            _log.warning("--cluster-cidr=%s has host bits and is read as %s", given, network)
        found.append(network)
    return tuple(found)


def route_options(options: argparse.Namespace, pods: tuple[str, ...]) -> RouteOptions:
    """The route controller's options. Raises `InvalidConfiguration` where the pods' ranges are missing or too many."""
    if not pods:
        why = "nothing is given; controller route needs it"
        raise InvalidConfiguration("cluster-cidr", why, "--cluster-cidr=CIDR, or --configure-cloud-routes=false")
    return RouteOptions(pods, delete_foreign=options.delete_foreign_routes)


def effective(options: argparse.Namespace) -> dict[str, Any]:
    """Every option and its value, for /configz. No option is a secret: credentials stand in files that they name."""
    left_out = {"command", "command_name", *(flag.replace("-", "_") for flag in cli_upstream.FLAGS)}
    return {name.replace("_", "-"): value for name, value in sorted(vars(options).items()) if name not in left_out}


def _serving(options: argparse.Namespace) -> Serving:
    def client(path: str | None) -> Kube | None:
        return Kube.from_file(Path(path)) if path else None

    pair = (options.tls_cert_file, options.tls_private_key_file)
    return Serving(
        address=options.bind_address,
        port=options.secure_port,
        certificate=(Path(pair[0]), Path(pair[1])) if all(pair) else None,
        open_paths=tuple(options.authorization_always_allow_paths),
        protected=not ip_address(options.bind_address).is_loopback,
        authentication=client(options.authentication_kubeconfig),
        authorization=client(options.authorization_kubeconfig),
        configuration=effective(options),
    )


def refuse_json_without_yes(options: argparse.Namespace) -> None:
    """Raise `InvalidConfiguration` if the command would ask for consent to a plan that it does not show."""
    if vars(options).get("yes") is False and options.output == "json":
        raise InvalidConfiguration("output", "json shows no plan to agree to", "json with --yes")


def _refuse_contradictions(options: argparse.Namespace) -> None:
    given = vars(options)
    refuse_json_without_yes(options)
    if options.context and not options.kubeconfig:
        raise InvalidConfiguration("context", "given without --kubeconfig")
    if options.kube_api_burst is not None and options.kube_api_qps == 0:
        raise InvalidConfiguration("kube-api-burst", "given without --kube-api-qps, and there is no limit without that")
    if options.log_level is not None and options.v is not None:
        raise InvalidConfiguration("v", "given beside --log-level; both say how much is logged")
    if options.delete_foreign_routes and "route" not in chosen(options):
        raise InvalidConfiguration("delete-foreign-routes", "given, but controller route does not run")
    cert, key = given.get("tls_cert_file"), given.get("tls_private_key_file")
    if bool(cert) != bool(key):
        have, lacks = ("tls-cert-file", "tls-private-key-file") if cert else ("tls-private-key-file", "tls-cert-file")
        raise InvalidConfiguration(have, f"given without --{lacks}")
    if given.get("secure_port") == 0 and cert:
        raise InvalidConfiguration("tls-cert-file", "given, but --secure-port=0 serves nothing")


_PERIODS = (
    ("--node-monitor-period", 5.0, "how often the cloud is asked about nodes that are not ready"),
    ("--node-status-update-frequency", 300.0, "how often all nodes are compared with their machines"),
    ("--route-reconciliation-period", 30.0, "how often the route table is read though no node changed"),
)
_LEASE = (
    ("--leader-elect-lease-duration", 15.0, "after this a lease that is not renewed may be taken"),
    ("--leader-elect-renew-deadline", 10.0, "a leader that could not renew for so long ends"),
    ("--leader-elect-retry-period", 2.0, "between two tries"),
)
_FLAG: dict[str, Any] = {
    "type": values.boolean,
    "nargs": "?",
    "const": True,
    "default": False,
    "metavar": "true|false",
}
