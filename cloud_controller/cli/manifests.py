"""Implements `cloud-controller manifests`: prints the objects that run the daemon, for kubectl or kustomize.

It connects to neither the cluster nor the cloud, and its output depends on the options alone.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from cloud_controller import clouds, manifests, pod_network, rbac
from cloud_controller.cli import options as cli_options
from cloud_controller.cli import values
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.descriptor import PodIdentity
from cloud_controller.controller_names import controllers
from cloud_controller.doctor import cron_job
from cloud_controller.load_balancers.readiness_gates import OPTION, Mode
from cloud_controller.manifests import CONFIG_FILE, CONFIG_SECRET, CREDENTIAL_EXPIRES, NAMESPACE, Manifest
from cloud_controller.monitoring import manifests as monitoring
from cloud_controller.service_admission import OPTION as ADMISSION
from cloud_controller.service_admission import Admission

Check: TypeAlias = Callable[[list[str]], argparse.Namespace]
"""Parses arguments of `run`, and rejects those that `run` would reject."""

_DECIDED = frozenset(
    {
        "authentication-kubeconfig",
        "authorization-kubeconfig",
        "bind-address",
        "cloud",
        "cloud-config",
        "cloud-provider",
        "cluster-cidr",
        "cluster-name",
        "config",
        "context",
        "controllers",
        "credential-expires",
        "dry-run",
        "kubeconfig",
        "leader-elect",
        "leader-elect-resource-name",
        "leader-elect-resource-namespace",
        "readiness-gates",
        "secure-port",
        "tls-cert-file",
        "tls-private-key-file",
    }
)
"""Daemon options that other parts of the manifests depend on, or that name files missing from the container."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--cloud", required=True, metavar="NAME", help=f"cloud: {', '.join(clouds.names())}")
    parser.add_argument("--image", required=True, metavar="IMAGE", help="container image, built by `make image`")
    parser.add_argument(
        "--with-cloud-config",
        metavar="FILE",
        help="also print the Secret with this cloud config, INCLUDING CREDENTIALS (default: you create the Secret)",
    )
    parser.add_argument(
        "--controllers", type=values.words, default=["*"], metavar="LIST", help="as for `run` (default: *)"
    )
    parser.add_argument(
        "--cluster-name", default="kubernetes", metavar="NAME", help="cluster name for display (default: kubernetes)"
    )
    parser.add_argument(
        "--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="pod CIDRs; required by controller route"
    )
    parser.add_argument(
        "--control-plane-machines",
        type=values.count_or_none,
        default=1,
        metavar="N",
        help="number of control-plane nodes, each of which runs one daemon; 0: the cloud runs the control plane, and "
        f"{manifests.REPLICAS} replicas run on workers (default: 1)",
    )
    parser.add_argument(
        OPTION,
        choices=[each.value for each in Mode],
        help="readiness gates of pods behind load balancers: off; by-hand: served where pods have them; inject: an "
        "admission policy adds them (Kubernetes 1.36 or later) (default: inject where the cloud has classes with "
        "gates, otherwise off)",
    )
    parser.add_argument(
        ADMISSION,
        choices=[each.value for each in Admission],
        default=Admission.OFF.value,
        help="what the API server does at once with Services whose annotations the controller would reject: deny, warn "
        "or off; a namespace's label may say otherwise (Kubernetes 1.30 or later) (default: off)",
    )
    parser.add_argument("--role", metavar="NAME", help="cloud role that the ServiceAccount assumes, such as an ARN")
    parser.add_argument(
        monitoring.OPTION,
        choices=[each.value for each in monitoring.Mode],
        default=monitoring.Mode.OFF.value,
        help="how Prometheus finds the daemon and its alert rules: operator: custom resources of the Prometheus "
        "operator; annotations: those of the pods, with the rules in a ConfigMap; off (default: off)",
    )
    parser.add_argument(
        "--prometheus-account",
        type=values.namespaced_name,
        default=monitoring.SCRAPER,
        metavar="NAMESPACE/NAME",
        help=f"Prometheus' ServiceAccount, which may read the metrics (default: {monitoring.SCRAPER})",
    )
    parser.add_argument(
        CREDENTIAL_EXPIRES,
        type=values.day,
        metavar="YYYY-MM-DD",
        help="last day of the credential in the cloud config: an annotation of its Secret, and a metric of the daemon",
    )
    parser.add_argument(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment variable of the container, such as HTTPS_PROXY=URL (repeatable; not for secrets)",
    )
    parser.add_argument(
        "--leader-elect-resource-name",
        type=values.object_name,
        default=rbac.LEASE_NAME,
        metavar="NAME",
        help=f"name of the Lease that the Role grants access to (default: {rbac.LEASE_NAME})",
    )
    parser.add_argument(
        "--doctor-schedule",
        type=_schedule,
        metavar="SCHEDULE",
        help="also run `cloud-controller doctor` in the cluster on this schedule (UTC), such as '0 * * * *', with a "
        "ServiceAccount of its own that may only read (default: not at all)",
    )
    parser.add_argument(
        "--doctor-push-gateway",
        metavar="URL",
        help="Prometheus Pushgateway that gets the findings of --doctor-schedule as metrics",
    )
    parser.add_argument(
        "--doctor-role",
        metavar="NAME",
        help="cloud role that doctor's ServiceAccount assumes; required with --role and --doctor-schedule",
    )
    parser.add_argument("--kustomize", metavar="DIR", help="write a kustomize base into DIR instead of printing")
    parser.add_argument("further", nargs="*", metavar="-- OPTION", help="more options for `run`, after `--`")


def run(check: Check, options: argparse.Namespace) -> int:
    """Print the manifests that run the daemon in a cluster, as YAML. Connects to neither the cluster nor the cloud.
    Pass other options of `run` after `--`."""
    cloud = clouds.descriptor(options.cloud)
    identity = _identity(cloud, options.role)
    for name, _ in options.env:
        if name in (manifests.ADDRESS_VARIABLE, *(identity.environment if identity else ())):
            raise InvalidConfiguration("env", f"the manifests already set {name}", "other names")
    _check_doctor(options)
    config = _cloud_config(options, cloud.file_keys)
    names = controllers(options.controllers, cloud.not_offered)
    daemon = _daemon(check, options, cloud, names)
    mode = cloud.readiness_gates.mode(options.readiness_gates, names)
    of_daemon = manifests.make(
        daemon,
        machines=options.control_plane_machines,
        checksum=None if config is None else hashlib.sha256(config.encode()).hexdigest(),
        identity=identity,
        environment=dict(options.env),
        storage=cloud.storage if "volume" in names else (),
        scrape_annotations=options.monitoring != monitoring.Mode.OPERATOR,
        admission=(
            *manifests.readiness_gates(cloud.readiness_gates, mode, daemon.arguments),
            *manifests.admission_of_services(
                cloud, _admission(options.service_admission, names), daemon.arguments, config
            ),
        ),
    )
    watched = monitoring.Monitoring(
        mode=monitoring.Mode(options.monitoring),
        provider=cloud.provider_id_scheme,
        scraper=options.prometheus_account,
    )
    doctor = () if options.doctor_schedule is None else _doctor(options, cloud, daemon)
    made = (*of_daemon, *monitoring.make(watched), *doctor)
    secret = () if config is None else (manifests.cloud_config(config, options.credential_expires),)
    text = _header(options.cloud, with_secret=bool(secret))
    if options.kustomize:
        _write_base(Path(options.kustomize), text, [*secret, *made])
    else:
        print(text + _stream([*secret, *made]), end="")
    return 0


def _identity(cloud: clouds.CloudDescriptor, role: str | None) -> PodIdentity | None:
    if not role:
        return None
    if cloud.identity is None:
        raise InvalidConfiguration("role", f"cloud {cloud.name} does not support roles for pods", "none")
    return cloud.identity(role, manifests.TOKEN_FILE)


def _check_doctor(options: argparse.Namespace) -> None:
    if options.doctor_schedule is None:
        for name in ("doctor-push-gateway", "doctor-role"):
            if getattr(options, name.replace("-", "_")) is not None:
                raise InvalidConfiguration(name, "needs --doctor-schedule", "both, or neither")
    elif bool(options.role) != bool(options.doctor_role):
        # The CCM's trusts its ServiceAccount alone; without a role, every run would report that the cloud refuses.
        why = "with --doctor-schedule, doctor has a role exactly where the CCM has one (--role)"
        raise InvalidConfiguration("doctor-role", why, "both, or neither")
    elif (gateway := options.doctor_push_gateway) and cron_job.gateway_port(gateway) is None:
        allowed = "a URL, such as http://pushgateway.monitoring:9091"
        raise InvalidConfiguration("doctor-push-gateway", f"{gateway!r} is not a URL", allowed)


def _doctor(options: argparse.Namespace, cloud: clouds.CloudDescriptor, daemon: manifests.Daemon) -> Iterator[Manifest]:
    return cron_job.make(
        daemon,
        options.doctor_schedule,
        cloud=options.cloud,
        lease=options.leader_elect_resource_name,
        on_control_plane=options.control_plane_machines > 0,
        environment=dict(options.env),
        push_gateway=options.doctor_push_gateway,
        identity=_identity(cloud, options.doctor_role),
    )


def _daemon(
    check: Check, options: argparse.Namespace, cloud: clouds.CloudDescriptor, names: Sequence[str]
) -> manifests.Daemon:
    for given in options.further:
        name = given.removeprefix("--").partition("=")[0]
        if name in _DECIDED:
            raise InvalidConfiguration(name, "not allowed after `--`: the manifests set it")
    mode = cloud.readiness_gates.mode(options.readiness_gates, names)
    arguments = manifests.arguments(
        options.cloud,
        names,
        cluster_name=options.cluster_name,
        cluster_cidr=options.cluster_cidr or None,
        lease=options.leader_elect_resource_name,
        expires=options.credential_expires,
        further=[*cloud.readiness_gates.flag(mode), *options.further],
    )
    # Reject here what the daemon would reject at startup.
    cli_options.manager_options(check(arguments))
    rules = rbac.rules(
        names,
        protected=True,
        keeps_checkpoint=cloud.keeps_checkpoint,
        readiness_gates=mode is not Mode.OFF,
        lease=options.leader_elect_resource_name,
    )
    on_pods = pod_network.suffices(names, options.control_plane_machines, has_role=bool(options.role))
    return manifests.Daemon(options.image, arguments, rules, metadata=cloud.metadata if on_pods else None)


def _admission(given: str, names: Sequence[str]) -> Admission:
    mode = Admission(given)
    if mode is not Admission.OFF and "service" not in names:
        raise InvalidConfiguration(ADMISSION.removeprefix("--"), f"{mode}, but controller service is not chosen", "off")
    return mode


def _cloud_config(options: argparse.Namespace, file_keys: Sequence[str]) -> str | None:
    """The text of the file. Raises InvalidConfiguration if the cloud rejects it or it refers to other files."""
    if options.with_cloud_config is None:
        return None
    try:
        text = Path(options.with_cloud_config).read_text()
    except UnicodeDecodeError:
        raise InvalidConfiguration("with-cloud-config", f"{options.with_cloud_config} is not UTF-8 text") from None
    for key in file_keys:
        if re.search(rf"^\s*{re.escape(key)}\s*[=:]", text, re.MULTILINE | re.IGNORECASE):
            why = "names a file that does not exist in the pods"
            raise InvalidConfiguration(f"cloud config: {key}", why, "the file's content, inline")
    clouds.load(options.cloud, text)
    return text


def _schedule(text: str) -> str:
    if not cron_job.is_schedule(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a schedule of five fields, such as '0 * * * *'")
    return text


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        raise argparse.ArgumentTypeError("not NAME=VALUE")
    return name, value


# ------------------------------------------------------------------------------------------------------------- text


class _Dumper(yaml.SafeDumper):
    """Writes repeated values in full: YAML aliases are hard to read, and some tools do not support them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Always."""
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # kubectl reads `1e3` as a number and `y` as true, PyYAML does not: quote these, and whatever starts like a number.
    style = "|" if "\n" in text else "'" if re.match(r"[-+]?\.?[0-9]|[yYnN]$", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120)


def _stream(objects: Iterable[Manifest]) -> str:
    return "".join(f"---\n{_yaml(each)}" for each in objects)


def _header(cloud: str, *, with_secret: bool) -> str:
    lines = [f"Generated by cloud-controller {version('cloud-controller')} for cloud {cloud}."]
    if with_secret:
        lines.append("Contains the cloud config INCLUDING CREDENTIALS: do not commit it.")
    else:
        lines += [
            "The pods start once the Secret with the cloud config exists:",
            f"  kubectl --namespace {NAMESPACE} create secret generic {CONFIG_SECRET} --from-file={CONFIG_FILE}=FILE",
        ]
    return "".join(f"# {line}\n" for line in lines)


def _write_base(folder: Path, header: str, objects: list[Manifest]) -> None:
    """Write one file per kind of object; other files in the folder stay."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Manifest]] = {}
    for each in objects:
        files.setdefault(f"{each['kind'].lower()}.yaml", []).append(each)
    for name, of_kind in files.items():
        path = folder / name
        if of_kind[0]["kind"] == "Secret":
            path.touch(mode=0o600)
            path.chmod(0o600)
        path.write_text(_yaml(of_kind[0]) if len(of_kind) == 1 else _stream(of_kind))
    base = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [*files]}
    (folder / "kustomization.yaml").write_text(header + _yaml(base))
