"""`cloud-controller manifests`: the objects that run the daemon in a cluster, for kubectl or kustomize.

It reaches neither a cluster nor a cloud. The same options give the same text.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from cloud_controller import clouds, manifests, rbac
from cloud_controller.cli import options as cli_options
from cloud_controller.cli import values
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controller_names import controllers
from cloud_controller.manifests import CONFIG_FILE, CONFIG_SECRET, NAMESPACE, Manifest

Check: TypeAlias = Callable[[list[str]], argparse.Namespace]
"""The command line's own parser: it refuses what `run` would refuse."""

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
        "dry-run",
        "kubeconfig",
        "leader-elect",
        "leader-elect-resource-name",
        "leader-elect-resource-namespace",
        "secure-port",
        "tls-cert-file",
        "tls-private-key-file",
    }
)
"""Options of the daemon on which other parts of the objects depend, or that name files which its container lacks."""


def add(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument("--cloud", required=True, metavar="NAME", help=f"known here: {', '.join(clouds.names())}")
    parser.add_argument("--image", required=True, metavar="IMAGE", help="the daemon's image, built by `make image`")
    parser.add_argument(
        "--with-cloud-config",
        metavar="FILE",
        help="also print the Secret with this cloud config, credentials included; without it, you make the Secret",
    )
    parser.add_argument(
        "--controllers", type=values.words, default=["*"], metavar="LIST", help="as for `run`; default: *"
    )
    parser.add_argument("--cluster-name", default="kubernetes", metavar="NAME", help="for people; default: kubernetes")
    parser.add_argument("--cluster-cidr", default="", metavar="CIDR[,CIDR]", help="the pods' ranges; route needs them")
    parser.add_argument(
        "--control-plane-machines",
        type=values.count_or_none,
        default=1,
        metavar="N",
        help="how many nodes of the control plane run one daemon each; 0: the cloud runs the control plane, and "
        f"{manifests.REPLICAS} run on workers; default: 1",
    )
    parser.add_argument(
        "--role", metavar="NAME", help="the cloud's role that the ServiceAccount takes (AWS: the ARN of an IAM role)"
    )
    parser.add_argument(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable of the container, such as AWS_REGION=eu-central-1; no secrets",
    )
    parser.add_argument(
        "--leader-elect-resource-name",
        type=values.object_name,
        default=rbac.LEASE_NAME,
        metavar="NAME",
        help=f"the Lease, for which the rights are; default: {rbac.LEASE_NAME}",
    )
    parser.add_argument("--kustomize", metavar="DIR", help="write a kustomize base into this folder; print nothing")
    parser.add_argument("further", nargs="*", metavar="-- OPTION", help="further options of `run`, after `--`")


def run(check: Check, options: argparse.Namespace) -> int:
    """`cloud-controller manifests`: print the objects that run the daemon in a cluster, as YAML. It reaches neither a
    cluster nor a cloud. Options of `run` that it does not have follow after `--`."""
    cloud = clouds.descriptor(options.cloud)
    if options.role and cloud.identity is None:
        raise InvalidConfiguration("role", f"given, but pods on {options.cloud} take no roles", "none")
    identity = cloud.identity(options.role, manifests.TOKEN_FILE) if cloud.identity and options.role else None
    for name, _ in options.env:
        if name in (manifests.ADDRESS_VARIABLE, *(identity.environment if identity else ())):
            raise InvalidConfiguration("env", f"{name} is set by the manifests themselves", "other names")
    config = _cloud_config(options, cloud.file_keys)
    names = controllers(options.controllers, cloud.not_offered)
    made = manifests.make(
        _daemon(check, options, cloud, names),
        machines=options.control_plane_machines,
        checksum=None if config is None else hashlib.sha256(config.encode()).hexdigest(),
        identity=identity,
        environment=dict(options.env),
        storage=cloud.storage if "volume" in names else (),
    )
    secret = () if config is None else (manifests.cloud_config(config),)
    text = _header(options.cloud, with_secret=bool(secret))
    if options.kustomize:
        _write_base(Path(options.kustomize), text, [*secret, *made])
    else:
        print(text + _stream([*secret, *made]), end="")
    return 0


def _daemon(
    check: Check, options: argparse.Namespace, cloud: clouds.CloudDescriptor, names: Sequence[str]
) -> manifests.Daemon:
    for given in options.further:
        name = given.removeprefix("--").partition("=")[0]
        if name in _DECIDED:
            raise InvalidConfiguration(name, "not allowed after `--`: other parts of the manifests depend on it")
    arguments = manifests.arguments(
        options.cloud,
        names,
        cluster_name=options.cluster_name,
        cluster_cidr=options.cluster_cidr or None,
        lease=options.leader_elect_resource_name,
        further=options.further,
    )
    # What the daemon would refuse at its start is refused here.
    cli_options.manager_options(check(arguments))
    rules = rbac.rules(
        names, protected=True, keeps_checkpoint=cloud.keeps_checkpoint, lease=options.leader_elect_resource_name
    )
    return manifests.Daemon(options.image, arguments, rules)


def _cloud_config(options: argparse.Namespace, file_keys: Sequence[str]) -> str | None:
    """The text of the file, which the cloud must accept, and which names no other file."""
    if options.with_cloud_config is None:
        return None
    try:
        text = Path(options.with_cloud_config).read_text()
    except UnicodeDecodeError:
        raise InvalidConfiguration("with-cloud-config", f"{options.with_cloud_config} is not text") from None
    for key in file_keys:
        if re.search(rf"^\s*{re.escape(key)}\s*[=:]", text, re.MULTILINE | re.IGNORECASE):
            why = "names a file, which the pods do not have"
            raise InvalidConfiguration(f"cloud config: {key}", why, "what is in that file")
    clouds.load(options.cloud, text)
    return text


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        raise argparse.ArgumentTypeError("not of the form NAME=VALUE")
    return name, value


# ------------------------------------------------------------------------------------------------------------- text


class _Dumper(yaml.SafeDumper):
    """Writes values that appear twice twice: an alias is hard to read, and some tools do not know it."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Always."""
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # kubectl takes `1e3` for a number, PyYAML does not: whatever begins like one is quoted.
    style = "|" if "\n" in text else "'" if re.match(r"[-+.]?[0-9]", text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120)


def _stream(objects: Iterable[Manifest]) -> str:
    return "".join(f"---\n{_yaml(each)}" for each in objects)


def _header(cloud: str, *, with_secret: bool) -> str:
    lines = [f"Written by cloud-controller {version('cloud-controller')} for cloud {cloud}."]
    if with_secret:
        lines.append("It holds the cloud config, credentials included: do not commit it.")
    else:
        lines += [
            "The pods wait for the Secret with the cloud config:",
            f"  kubectl --namespace {NAMESPACE} create secret generic {CONFIG_SECRET} --from-file={CONFIG_FILE}=FILE",
        ]
    return "".join(f"# {line}\n" for line in lines)


def _write_base(folder: Path, header: str, objects: list[Manifest]) -> None:
    """One file an object; what the folder holds besides is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{each['kind'].lower()}.yaml": each for each in objects}
    for name, each in files.items():
        path = folder / name
        if each["kind"] == "Secret":
            path.touch(mode=0o600)
            path.chmod(0o600)
        path.write_text(_yaml(each))
    base = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [*files]}
    (folder / "kustomization.yaml").write_text(header + _yaml(base))
