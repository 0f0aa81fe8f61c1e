"""The command-line options and how they become settings. Names and defaults are upstream's where they fit."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any

from cloud_controller import clouds
from cloud_controller.binding import NOTHING, Binding
from cloud_controller.cli import config_file as cli_config_file
from cloud_controller.cli import upstream as cli_upstream
from cloud_controller.cli import values
from cloud_controller.cloud import Cloud, InvalidConfiguration
from cloud_controller.controller_names import controllers
from cloud_controller.controllers.route import RouteOptions
from cloud_controller.controllers.service.address_changes import ANNOTATION as ACKNOWLEDGEMENT
from cloud_controller.controllers.service.address_changes import OPTION as ADDRESS_CHANGES
from cloud_controller.controllers.service.address_changes import AddressChanges
from cloud_controller.controllers.service.controller import ServiceOptions
from cloud_controller.daemon.leader import LeaseTimes
from cloud_controller.daemon.options import ManagerOptions, Serving
from cloud_controller.kube import Kube
from cloud_controller.kube.rate_limit import RateLimit
from cloud_controller.load_balancers.nameable import KINDS, OPTION, Nameable
from cloud_controller.load_balancers.readiness_gates import OPTION as GATES
from cloud_controller.load_balancers.sharing import SHARE, SHARE_OPTION, SHARED_WITH_TAG, Sharing
from cloud_controller.manifests import CREDENTIAL_EXPIRES
from cloud_controller.planning import PlanSettings
from cloud_controller.safeguard import Safeguard, cluster_uid

_BURST = 30
_ALWAYS_ALLOWED = ["/healthz", "/readyz", "/livez"]

_log = logging.getLogger(__name__)


def parse(
    parser: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser], arguments: Sequence[str] | None
) -> argparse.Namespace:
    """Merge the command line over the config file that it names over the defaults, and reject contradictions.

    Raises `InvalidConfiguration`. A usage error on the command line exits with 2, as argparse does.
    """
    options = parser.parse_args(arguments)
    if getattr(options, "config", None):
        path = Path(options.config)
        of_file = cli_config_file.read(path, commands, options.command_name)
        commands[options.command_name].set_defaults(**of_file)
        options = parser.parse_args(arguments)
    if options.command_name in commands:
        if not options.cloud:
            commands[options.command_name].error("--cloud is required, on the command line or in --config")
        clouds.descriptor(options.cloud)  # A misspelt name is the first error, before a missing kubeconfig.
        _refuse_contradictions(options)
    return options


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command needs to reach the cloud and the cluster."""
    parser.add_argument("--config", metavar="FILE", help="YAML file with these options, without dashes")
    reach = parser.add_argument_group("cloud and cluster")
    reach.add_argument(
        "--cloud", "--cloud-provider", metavar="NAME", help=f"cloud (required): {', '.join(clouds.names())}"
    )
    reach.add_argument("--cloud-config", metavar="FILE", help="cloud config, with credentials")
    add_cluster(reach)
    reach.add_argument(
        "--moved-from-cluster",
        metavar="UID",
        help="take over the cloud resources of the Kubernetes cluster with this UID (of its namespace kube-system); "
        f"{NOTHING}: start although no cloud resource belongs to an object of this cluster",
    )
    reach.add_argument(
        "--kube-api-qps",
        type=values.rate,
        default=0.0,
        metavar="N",
        help="requests per second; 0: no limit (default: 0)",
    )
    reach.add_argument(
        "--kube-api-burst", type=values.count, metavar="N", help=f"burst above --kube-api-qps (default: {_BURST})"
    )
    add_controllers(parser)
    add_logs(parser)
    cli_upstream.add(parser)


def add_controllers(parser: argparse.ArgumentParser) -> None:
    """Add the options that decide what the controllers do."""
    what = parser.add_argument_group("controllers")
    what.add_argument(
        "--controllers",
        type=values.words,
        default=["*"],
        metavar="LIST",
        help="comma-separated controllers; '*': all that the cloud supports; '-NAME': all but this one (default: *)",
    )
    what.add_argument(
        "--cluster-name", default="kubernetes", metavar="NAME", help="cluster name for display (default: kubernetes)"
    )
    what.add_argument(
        "--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="pod CIDRs; required by controller route"
    )
    what.add_argument(
        "--configure-cloud-routes", **_FLAG | {"default": True}, help="run controller route (default: true)"
    )
    what.add_argument(
        "--delete-foreign-routes",
        **_FLAG,
        help="also delete routes inside the pod CIDRs that do not belong to this cluster (default: only report them)",
    )
    what.add_argument(
        "--backend-nodes",
        choices=("eligible", "ready-workers"),
        default="eligible",
        help="nodes that load balancers send traffic to: eligible: as upstream (KEP-3458); ready-workers: only ready, "
        "schedulable workers (default: eligible)",
    )
    what.add_argument(
        "--require-load-balancer-class",
        **_FLAG,
        help="ignore Services without spec.loadBalancerClass; another controller serves them",
    )
    what.add_argument(
        "--shared-load-balancers",
        choices=[each.value for each in Sharing],
        default=Sharing.TAGGED.value,
        help="load balancers that annotations may name: off: none; tagged: those of Services in the same namespace "
        f"and those with tag {SHARED_WITH_TAG}; any: all (default: tagged)",
    )
    what.add_argument(
        SHARE_OPTION,
        type=values.count_or_none,
        default=SHARE,
        metavar="N",
        help="listeners that each namespace may have on a load balancer that is shared with everybody; 0: no limit "
        f"(default: {SHARE})",
    )
    what.add_argument(
        ADDRESS_CHANGES,
        choices=[each.value for each in AddressChanges],
        default=AddressChanges.ALLOW.value,
        help="what to do with a change that gives a Service another address: allow: make it, as upstream; acknowledge: "
        f"hold it until the Service's annotation {ACKNOWLEDGEMENT} names it (default: allow)",
    )
    what.add_argument(
        OPTION,
        type=values.nameable,
        default=[],
        metavar="LIST",
        help="existing cloud resources that annotations may name: comma-separated KIND=PATTERN and KIND=tag:KEY=VALUE, "
        f"or any; a kind without an entry is not restricted; kinds: {', '.join(KINDS)}",
    )
    what.add_argument(
        GATES,
        **_FLAG | {"default": None},
        help="set the conditions of pods' readiness gates once the pods are healthy in their load balancers (default: "
        "true where the cloud has classes with gates)",
    )


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Add the logging options."""
    logging = parser.add_argument_group("logs")
    logging.add_argument("--log-level", choices=("debug", "info", "warning", "error"), help="log level (default: info)")
    logging.add_argument("-v", "--v", type=values.verbosity, metavar="N", help="klog verbosity; 4 and above: debug")
    logging.add_argument(
        "--logging-format", choices=("text", "json"), default="text", help="log format (default: text)"
    )


def add_cleanup(parser: argparse.ArgumentParser) -> None:
    """Add the options of `cleanup`. It requires the cluster id too, so that a cloud config alone deletes nothing."""
    parser.add_argument("--cloud", required=True, metavar="NAME", help=f"cloud: {', '.join(clouds.names())}")
    parser.add_argument("--cloud-config", required=True, metavar="FILE", help="cloud config, with credentials")
    parser.add_argument(
        "--cluster-id", required=True, metavar="ID", help="id of the deleted cluster; must match the cloud config"
    )
    parser.add_argument(
        "--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="pod CIDRs (default: none; pod routes are kept)"
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig of the cluster's former API server: if another cluster answers there, this one is gone. "
        "DANGER: a kubeconfig of any other cluster shows the same",
    )
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current-context)")
    parser.add_argument(
        "--cluster-is-gone",
        action="store_true",
        help="you know that the cluster is gone, where the cloud cannot tell. At stake are all its load balancers, its "
        "volumes with their data, and its pod routes: without this option, the refusal counts them",
    )
    add_logs(parser)


def add_outcome(parser: argparse.ArgumentParser) -> None:
    """Add the options for approval, deadline and output."""
    parser.add_argument("--output", choices=("text", "json"), default="text", help="output format (default: text)")
    parser.add_argument("--yes", action="store_true", help="apply without asking for approval")
    parser.add_argument(
        "--deadline",
        type=values.duration,
        default=300.0,
        metavar="TIME",
        help="time limit for applying (default: 300s)",
    )


def add_cluster(parser: argparse._ActionsContainer) -> None:
    """Add the options that select the Kubernetes cluster."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig (default: the pod's service account)")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current-context)")


def add_lease(parser: argparse.ArgumentParser) -> None:
    """Add the leader-election options."""
    leader = parser.add_argument_group("leader election")
    leader.add_argument(
        "--leader-elect", **_FLAG | {"default": True}, help="work only while holding the Lease (default: true)"
    )
    add_lease_name(leader)
    for name, default, text in _LEASE:
        leader.add_argument(
            name, type=values.duration, default=default, metavar="TIME", help=f"{text} (default: {default:g}s)"
        )


def add_lease_name(leader: argparse._ActionsContainer) -> None:
    """Add the options that name the Lease, which also stores the confirmations of held actions."""
    leader.add_argument(
        "--leader-elect-resource-namespace",
        type=values.namespace,
        default="kube-system",
        metavar="NS",
        help="namespace of the Lease (default: kube-system)",
    )
    leader.add_argument(
        "--leader-elect-resource-name",
        type=values.object_name,
        default="cloud-controller-manager",
        metavar="NAME",
        help="name of the Lease (default: cloud-controller-manager)",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options that only the daemon has."""
    parser.add_argument("--dry-run", **_FLAG, help="log plans without writing anything: no object, Lease or event")
    parser.add_argument(
        CREDENTIAL_EXPIRES,
        type=values.day,
        metavar="YYYY-MM-DD",
        help="last day of the credential in the cloud config, for the metric that an alert reads (default: none)",
    )
    periods = parser.add_argument_group("periods", "durations such as 500ms, 5s, 5m or 12h")
    for name, default, text in _PERIODS:
        periods.add_argument(
            name, type=values.duration, default=default, metavar="TIME", help=f"{text} (default: {default:g}s)"
        )
    periods.add_argument(
        "--node-deletion-grace-period",
        type=values.duration_or_none,
        default=0.0,
        metavar="TIME",
        help="how long a machine must be missing before its node is deleted; 0: delete once confirmed (default: 0)",
    )
    periods.add_argument(
        "--service-resync-period",
        type=values.duration_or_none,
        default=300.0,
        metavar="TIME",
        help="how often all load balancers are read and drift is repaired; 0: never (default: 300s)",
    )
    workers = parser.add_argument_group("workers")
    workers.add_argument(
        "--concurrent-service-syncs",
        type=values.count,
        metavar="N",
        help="concurrent Services (default: the cloud's)",
    )
    workers.add_argument(
        "--concurrent-node-syncs", type=values.count, default=16, metavar="N", help="concurrent writes (default: 16)"
    )
    workers.add_argument(
        "--concurrent-node-status-updates",
        type=values.count_or_none,
        default=0,
        metavar="N",
        help="concurrent writes of a pass over all nodes; 0: same as --concurrent-node-syncs (default: 0)",
    )
    add_lease(parser)
    serving = parser.add_argument_group("serving", "/healthz, /livez, /readyz, /metrics and /configz over TLS")
    serving.add_argument(
        "--bind-address", type=values.address, default="127.0.0.1", metavar="IP", help="address (default: 127.0.0.1)"
    )
    serving.add_argument(
        "--secure-port", type=values.port, default=10258, metavar="PORT", help="port; 0: do not serve (default: 10258)"
    )
    serving.add_argument(
        "--tls-cert-file", metavar="FILE", help="PEM certificate (default: self-signed, generated in memory)"
    )
    serving.add_argument("--tls-private-key-file", metavar="FILE", help="PEM key; required with --tls-cert-file")
    serving.add_argument(
        "--authentication-kubeconfig", metavar="FILE", help="kubeconfig for TokenReviews (default: --kubeconfig)"
    )
    serving.add_argument(
        "--authorization-kubeconfig", metavar="FILE", help="kubeconfig for SubjectAccessReviews (default: --kubeconfig)"
    )
    serving.add_argument(
        "--authorization-always-allow-paths",
        type=values.paths,
        default=_ALWAYS_ALLOWED,
        metavar="LIST",
        help=f"paths served without authorization (default: {','.join(_ALWAYS_ALLOWED)})",
    )


def log_level(options: argparse.Namespace) -> str:
    """The log level."""
    if options.v is not None:
        return "debug" if options.v >= 4 else "info"
    return str(options.log_level or "info")


def kubernetes(options: argparse.Namespace) -> Kube:
    """The Kubernetes client. Raises `KubeconfigError`."""
    limit = None
    if getattr(options, "kube_api_qps", 0) > 0:
        limit = RateLimit(options.kube_api_qps, options.kube_api_burst or _BURST)
    if options.kubeconfig:
        return Kube.from_file(Path(options.kubeconfig), context=options.context, rate_limit=limit)
    return Kube.in_cluster(rate_limit=limit)


def chosen(options: argparse.Namespace, not_offered: Collection[str] = ()) -> tuple[str, ...]:
    """The chosen controllers; `*` leaves out `not_offered`. Raises `InvalidConfiguration`."""
    names = controllers(options.controllers, not_offered)
    if options.configure_cloud_routes or "route" not in names:
        return names
    if "*" not in options.controllers:
        raise InvalidConfiguration("configure-cloud-routes", "false conflicts with --controllers, which names route")
    return controllers([*options.controllers, "-route"], not_offered)


def manager_options(options: argparse.Namespace, not_offered: Collection[str] = ()) -> ManagerOptions:
    """The daemon's options. Raises `InvalidConfiguration`, `KubeconfigError`."""
    names = chosen(options, not_offered)
    pods = cluster_ranges(options)
    return ManagerOptions(
        controllers=names,
        route=route_options(options, pods) if "route" in names else None,
        service=service_options(options, pods),
        credential_expires=date.fromisoformat(options.credential_expires) if options.credential_expires else None,
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
    """The lease times. Raises `InvalidConfiguration` if they contradict each other."""
    return LeaseTimes(
        options.leader_elect_lease_duration,
        options.leader_elect_renew_deadline,
        options.leader_elect_retry_period,
    )


def service_options(options: argparse.Namespace, pods: tuple[str, ...]) -> ServiceOptions:
    """The service controller's options; only the daemon has workers and a resync period."""
    given = vars(options)
    cloud = clouds.descriptor(options.cloud)
    gates = cloud.readiness_gates
    serves_gates = gates.by_default if options.readiness_gates is None else options.readiness_gates
    return ServiceOptions(
        workers=given.get("concurrent_service_syncs", 1) or cloud.concurrent_services,
        resync=given.get("service_resync_period", 0.0),
        backend_nodes=options.backend_nodes,
        without_class=not options.require_load_balancer_class,
        pod_ranges=pods,
        sharing=Sharing(options.shared_load_balancers),
        share=options.shared_listeners_per_namespace,
        nameable=Nameable.parse(options.annotations_may_name),
        gates=gates if serves_gates else None,
        address_changes=AddressChanges(options.address_changes),
    )


def cluster_ranges(options: argparse.Namespace) -> tuple[str, ...]:
    """The pod CIDRs; like upstream, host bits are dropped. Raises `InvalidConfiguration`."""
    found: list[str] = []
    for given in filter(None, (part.strip() for part in options.cluster_cidr.split(","))):
        try:
            network = str(ip_network(given, strict=False))
        except ValueError as error:
            why = f"{given!r} is not a CIDR: {error}"
            raise InvalidConfiguration("cluster-cidr", why, "for example 10.20.0.0/16") from None
        if network != str(ip_interface(given)):
            _log.warning("--cluster-cidr=%s has host bits set; using %s", given, network)
        found.append(network)
    return tuple(found)


def cloud(options: argparse.Namespace) -> Cloud:
    """The cloud of --cloud and --cloud-config. Raises `InvalidConfiguration`, OSError."""
    try:
        text = "" if options.cloud_config is None else Path(options.cloud_config).read_text()
    except UnicodeDecodeError:
        raise InvalidConfiguration("cloud-config", f"{options.cloud_config} is not UTF-8 text") from None
    try:
        return clouds.load(options.cloud, text)
    except InvalidConfiguration as error:
        if options.cloud_config is None and options.cloud in clouds.names():
            raise InvalidConfiguration(
                "cloud-config", f"not set, but cloud {options.cloud} requires it: {error}"
            ) from None
        raise


def plan_settings(options: argparse.Namespace, kube: Kube, names: Collection[str]) -> tuple[PlanSettings, Safeguard]:
    """What the plans of these controllers depend on. Raises `InvalidConfiguration`, and `ApiError`: it reads the
    cluster's identity."""
    pods = cluster_ranges(options)
    route = route_options(options, pods) if "route" in names else None
    space, lease = options.leader_elect_resource_namespace, options.leader_elect_resource_name
    guard = Safeguard(kube, space, lease, binding=Binding(cluster_uid(kube), options.moved_from_cluster))
    return PlanSettings(route, service_options(options, pods), safeguard=guard), guard


def route_options(options: argparse.Namespace, pods: tuple[str, ...]) -> RouteOptions:
    """The route controller's options. Raises `InvalidConfiguration` if there are no pod CIDRs, or too many."""
    if not pods:
        why = "missing; controller route requires it"
        raise InvalidConfiguration("cluster-cidr", why, "--cluster-cidr=CIDR or --configure-cloud-routes=false")
    return RouteOptions(pods, delete_foreign=options.delete_foreign_routes)


def effective(options: argparse.Namespace) -> dict[str, Any]:
    """Every option and its value, for /configz. No option holds a secret: they name the files that do."""
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
    """Raise `InvalidConfiguration` if the command would ask for approval of a plan that it does not show."""
    if vars(options).get("yes") is False and options.output == "json":
        raise InvalidConfiguration("output", "json does not show a plan to approve", "json with --yes")


def _refuse_contradictions(options: argparse.Namespace) -> None:
    given = vars(options)
    refuse_json_without_yes(options)
    if options.context and not options.kubeconfig:
        raise InvalidConfiguration("context", "requires --kubeconfig")
    if options.kube_api_burst is not None and options.kube_api_qps == 0:
        raise InvalidConfiguration("kube-api-burst", "requires --kube-api-qps")
    if options.log_level is not None and options.v is not None:
        raise InvalidConfiguration("v", "conflicts with --log-level")
    if options.delete_foreign_routes and "route" not in chosen(options):
        raise InvalidConfiguration("delete-foreign-routes", "requires controller route, which is not enabled")
    cert, key = given.get("tls_cert_file"), given.get("tls_private_key_file")
    if bool(cert) != bool(key):
        have, lacks = ("tls-cert-file", "tls-private-key-file") if cert else ("tls-private-key-file", "tls-cert-file")
        raise InvalidConfiguration(have, f"requires --{lacks}")
    if given.get("secure_port") == 0 and cert:
        raise InvalidConfiguration("tls-cert-file", "conflicts with --secure-port=0, which serves nothing")


_PERIODS = (
    ("--node-monitor-period", 5.0, "how often the cloud is queried for nodes that are not ready"),
    ("--node-status-update-frequency", 300.0, "how often all nodes are compared with their machines"),
    ("--route-reconciliation-period", 30.0, "how often the route table is read while no node changes"),
)
_LEASE = (
    ("--leader-elect-lease-duration", 15.0, "how long a Lease is valid after its last renewal"),
    ("--leader-elect-renew-deadline", 10.0, "how long a leader may fail to renew before it exits"),
    ("--leader-elect-retry-period", 2.0, "pause between attempts to acquire or renew"),
)
_FLAG: dict[str, Any] = {
    "type": values.boolean,
    "nargs": "?",
    "const": True,
    "default": False,
    "metavar": "true|false",
}
