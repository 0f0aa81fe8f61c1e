"""The Kubernetes objects that run the cloud controller manager (CCM), as plain values. Pure.

The Pulumi program and `cloud-controller manifests` share them, so both install the same CCM.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import add

from cloud_controller import pod_network, rbac, readiness_policy, service_admission
from cloud_controller.clouds.descriptor import CloudDescriptor, FromConfig, PodIdentity
from cloud_controller.clouds.descriptor import Manifest as Manifest
from cloud_controller.clouds.descriptor import Text as Text
from cloud_controller.load_balancers import nameable, sharing
from cloud_controller.load_balancers.nameable import Nameable
from cloud_controller.load_balancers.readiness_gates import Mode, ReadinessGates
from cloud_controller.load_balancers.sharing import Sharing
from cloud_controller.service_admission import Admission, Limits

NAME = "cloud-controller-manager"
DOCTOR = f"{NAME}-doctor"
"""The name of the objects that run `cloud-controller doctor` on a schedule."""
NAMESPACE = rbac.LEASE_NAMESPACE
CONFIG_SECRET = f"{NAME}-config"
CONFIG_FILE = "cloud.conf"
CONFIG_PATH = f"/etc/cloud/{CONFIG_FILE}"
EXPIRES = "cloud-controller/credential-expires"
"""The annotation of a Secret with a credential that somebody has to replace (docs/security.md)."""
CREDENTIAL_EXPIRES = "--credential-expires"
"""The daemon's option with the same day, which becomes a metric."""
SECURE_PORT = 10258
REPLICAS = 2
"""Replicas on workers: a leader and a standby."""
TOKEN_DIRECTORY = "/var/run/secrets/cloud"
TOKEN_FILE = f"{TOKEN_DIRECTORY}/token"
_TOKEN_SECONDS = 3600
_NOBODY = 65534
_LABELS = {"k8s-app": NAME}
_SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(SECURE_PORT),
    "prometheus.io/path": "/metrics",
    "prometheus.io/scheme": "https",
}
ADDRESS_VARIABLE = "POD_IP"
_RBAC = "rbac.authorization.k8s.io"

# Seed 002 §8.1: the daemon must come up before any node is initialised or ready, and on the control plane.
TOLERATIONS: Sequence[Manifest] = (
    {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
    {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
)
_WITHOUT_ROUTES: Manifest = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
"""In its node's network, the daemon must also come up where the routes that it makes are missing."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """The container's image and arguments, and its RBAC rules."""

    image: Text
    arguments: Sequence[Text]
    """Without those for leader election and the listening address."""
    rules: rbac.Rules
    ready_path: str = "/readyz"
    metadata: Sequence[str] | None = None
    """Where the pod network suffices (`pod_network`): the ranges of machines' metadata, which it must not reach.

    None: it runs in its node's network."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects except the Secret (`cloud_config`), in the order in which to create them."""

    service_account: Manifest
    cluster_role: Manifest
    cluster_role_binding: Manifest
    role: Manifest
    role_binding: Manifest
    workload: Manifest
    budget: Manifest | None
    network_policy: Manifest | None
    storage: tuple[Manifest, ...]
    admission: tuple[Manifest, ...] = ()

    def __iter__(self) -> Iterator[Manifest]:
        # `kubectl delete` uses this order too: without the daemon, nothing would open the gates that the policy adds.
        yield from self.admission
        yield from (self.service_account, self.cluster_role, self.cluster_role_binding, self.role, self.role_binding)
        # Before the pods that it limits.
        if self.network_policy is not None:
            yield self.network_policy
        yield self.workload
        if self.budget is not None:
            yield self.budget
        yield from self.storage


def arguments(
    cloud: str,
    controllers: Sequence[str],
    *,
    cluster_name: Text,
    cluster_cidr: Text | None,
    lease: str,
    expires: str | None = None,
    further: Sequence[str] = (),
    concat: Callable[[str, Text], Text] = add,
) -> list[Text]:
    """The arguments of `cloud-controller run`; `concat` appends a Text to a string, `expires`: see `cloud_config`."""
    return [
        "run",
        f"--cloud={cloud}",
        f"--cloud-config={CONFIG_PATH}",
        f"--controllers={','.join(controllers)}",
        concat("--cluster-name=", cluster_name),
        *(() if cluster_cidr is None else (concat("--cluster-cidr=", cluster_cidr),)),
        f"--leader-elect-resource-name={lease}",
        *(() if expires is None else (f"{CREDENTIAL_EXPIRES}={expires}",)),
        # What ships logs finds their fields (seed 002 §11.3); `further` may say otherwise.
        "--logging-format=json",
        *further,
    ]


def make(
    daemon: Daemon,
    *,
    machines: int,
    checksum: Text | None,
    identity: PodIdentity | None = None,
    environment: Mapping[str, Text] | None = None,
    storage: tuple[Manifest, ...] = (),
    admission: tuple[Manifest, ...] = (),
    scrape_annotations: bool = True,
) -> Manifests:
    """All objects except the Secret with the cloud config, which the pods mount.

    - `machines`: the number of control-plane machines, each of which runs a pod of a DaemonSet; 0: the cloud runs the
      control plane, and a Deployment with two replicas runs on workers.
    - `checksum`: of the cloud config; a change restarts the pods.
    - `scrape_annotations`: whether the pods have Prometheus' annotations. False where its operator scrapes them: a
      Prometheus that follows both would count everything twice.
    """
    scraped = _SCRAPED if scrape_annotations else {}
    annotated = {"annotations": dict(identity.annotations)} if identity else {}
    running = machines or REPLICAS
    account, cluster_role, cluster_binding, role, binding = account_with(NAME, _LABELS, daemon.rules)
    return Manifests(
        service_account=account | {"metadata": account["metadata"] | annotated},
        cluster_role=cluster_role,
        cluster_role_binding=cluster_binding,
        role=role,
        role_binding=binding,
        workload=_workload(machines, _template(daemon, machines > 0, checksum, scraped, identity, environment or {})),
        budget=_budget(running) if running > 1 else None,
        network_policy=None if daemon.metadata is None else _network_policy(daemon.metadata),
        storage=storage,
        admission=admission,
    )


def readiness_gates(gates: ReadinessGates, mode: Mode, arguments: Sequence[Text]) -> tuple[Manifest, ...]:
    """The admission policy that adds gates to pods, if the mode asks for it; `arguments`: the daemon's."""
    if mode is not Mode.INJECT:
        return ()
    return readiness_policy.make(gates, _LABELS, without_class="--require-load-balancer-class" not in arguments)


def admission_of_services(
    cloud: CloudDescriptor, mode: Admission, arguments: Sequence[Text], config: str | None
) -> tuple[Manifest, ...]:
    """The policies by which the API server answers for Services' annotations.

    `arguments`: the daemon's. `config`: the text of the cloud config; None: what depends on it only the daemon says.
    """
    if mode is Admission.OFF:
        return ()
    known = FromConfig(cloud.load_balancer_classes, {})
    if config is not None and cloud.of_config is not None:
        known = cloud.of_config(config)
    classes = {*known.load_balancer_classes, *([] if "--require-load-balancer-class" in arguments else [None])}
    limits = replace(_limits(arguments), of_config=known.refusals)
    return service_admission.make(cloud.catalogue, classes, mode, _LABELS, cloud.of_others, limits)


def _limits(arguments: Sequence[Text]) -> Limits:
    """What of the daemon's arguments, which it has checked, limits annotations."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(nameable.OPTION, dest="named", default="")
    parser.add_argument(sharing.OPTION, dest="shared", default=Sharing.TAGGED.value)
    found, _ = parser.parse_known_args([each for each in arguments if isinstance(each, str)])
    return Limits(Nameable.parse(found.named.split(",")), Sharing(found.shared))


def cloud_config(text: Text, expires: str | None = None) -> Manifest:
    """The Secret with the cloud config; `expires`: the last day of a credential in it, YYYY-MM-DD."""
    annotated = {"annotations": {EXPIRES: expires}} if expires is not None else {}
    secret = _object("v1", "Secret", CONFIG_SECRET, annotated)
    return secret | {"type": "Opaque", "stringData": {CONFIG_FILE: text}}


def renamed(manifest: Manifest, name: str) -> Manifest:
    """One of the objects in a cluster in which another CCM's objects have the usual names; references follow."""
    ours = re.compile(rf"(system:)?{NAME}(-[a-z]+)?")

    def replaced(value: Text) -> Text:
        if isinstance(value, dict):
            # An option names the Lease.
            return value if value.get("resources") == ["leases"] else {k: replaced(v) for k, v in value.items()}
        if isinstance(value, list):
            return [replaced(each) for each in value]
        return value.replace(NAME, name) if isinstance(value, str) and ours.fullmatch(value) else value

    found: Manifest = replaced(manifest)
    return found


def account_with(name: str, labels: Mapping[str, str], rules: rbac.Rules) -> tuple[Manifest, ...]:
    """A ServiceAccount, and the roles that give it these rights, each with its binding after it."""
    namespaced = {"name": name, "namespace": NAMESPACE, "labels": dict(labels)}
    # Names of cluster roles start with `system:`, like those of Kubernetes' own components.
    wide: Manifest = {"name": f"system:{name}", "labels": dict(labels)}

    def bound(kind: str, role: str) -> Manifest:
        subjects = [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]
        return {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role}, "subjects": subjects}

    def of_rbac(kind: str, metadata: Manifest, content: Manifest) -> Manifest:
        return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": dict(metadata), **content}

    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(namespaced)},
        of_rbac("ClusterRole", wide, {"rules": [rule.to_json() for rule in rules.cluster]}),
        of_rbac("ClusterRoleBinding", wide, bound("ClusterRole", wide["name"])),
        of_rbac("Role", namespaced, {"rules": [rule.to_json() for rule in rules.namespaced]}),
        of_rbac("RoleBinding", namespaced, bound("Role", name)),
    )


def _object(api_version: str, kind: str, name: str = NAME, more: Manifest | None = None) -> Manifest:
    named = {"name": name, "namespace": NAMESPACE, "labels": dict(_LABELS), **(more or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": named}


def _workload(machines: int, template: Manifest) -> Manifest:
    # One at a time, without surge: two pods on one machine would conflict on the host port.
    rolling: Manifest = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    spec: Manifest = {"selector": {"matchLabels": dict(_LABELS)}}
    if machines > 0:
        return _object("apps/v1", "DaemonSet") | {"spec": spec | {"updateStrategy": rolling, "template": template}}
    rolling["rollingUpdate"]["maxSurge"] = 0
    spec |= {"strategy": rolling, "replicas": REPLICAS, "template": template}
    return _object("apps/v1", "Deployment") | {"spec": spec}


def _budget(running: int) -> Manifest:
    spec = {
        "selector": {"matchLabels": dict(_LABELS)},
        # An absolute number: percentages and maxUnavailable require a scale subresource, which DaemonSets lack.
        "minAvailable": running - 1,
        # Without this, an unready pod would block evictions.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return _object("policy/v1", "PodDisruptionBudget") | {"spec": spec}


def _network_policy(metadata: Sequence[str]) -> Manifest:
    spec = pod_network.policy(_LABELS, [SECURE_PORT], metadata)
    return _object("networking.k8s.io/v1", "NetworkPolicy") | {"spec": spec}


def _template(
    daemon: Daemon,
    on_control_plane: bool,
    checksum: Text | None,
    scraped: Mapping[str, str],
    identity: PodIdentity | None,
    environment: Mapping[str, Text],
) -> Manifest:
    annotations = {**({} if checksum is None else {"checksum/cloud-config": checksum}), **scraped}
    given = {**(identity.environment if identity else {}), **environment}
    spec = pod_spec(
        _container(daemon, given),
        account=NAME,
        on_control_plane=on_control_plane,
        # The pod network requires routes, which this pod creates.
        host_network=daemon.metadata is None,
        identity=identity,
    )
    spec["priorityClassName"] = "system-cluster-critical"
    if not on_control_plane:
        # Two pods on one machine would conflict on the host port.
        apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": dict(_LABELS)}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    return {"metadata": {"labels": dict(_LABELS), "annotations": annotations}, "spec": spec}


def pod_spec(
    container: Manifest,
    *,
    account: str,
    on_control_plane: bool,
    host_network: bool,
    identity: PodIdentity | None = None,
) -> Manifest:
    """A pod with this container, as nobody, with the cloud config and, for an identity, the token of its account."""
    mounts: list[Manifest] = [{"name": "cloud-config", "mountPath": "/etc/cloud", "readOnly": True}]
    volumes: list[Manifest] = [
        {"name": "cloud-config", "secret": {"secretName": CONFIG_SECRET, "defaultMode": 0o440}},
    ]
    if identity is not None:
        token = {"audience": identity.audience, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
        sources = {"sources": [{"serviceAccountToken": token}], "defaultMode": 0o440}
        mounts.append({"name": "cloud-token", "mountPath": TOKEN_DIRECTORY, "readOnly": True})
        volumes.append({"name": "cloud-token", "projected": sources})
    hardened = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    return {
        "serviceAccountName": account,
        "tolerations": [dict(each) for each in (*TOLERATIONS, *([_WITHOUT_ROUTES] if host_network else []))],
        **({"hostNetwork": True} if host_network else {}),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "fsGroup": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container | {"securityContext": hardened, "volumeMounts": mounts}],
        "volumes": volumes,
        **({"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}} if on_control_plane else {}),
    }


def variables(environment: Mapping[str, Text]) -> list[Manifest]:
    """The environment of a container."""
    return [{"name": key, "value": environment[key]} for key in sorted(environment)]


def _container(daemon: Daemon, environment: Mapping[str, Text]) -> Manifest:
    address: Manifest = {"name": ADDRESS_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {
        "name": NAME,
        "image": daemon.image,
        "args": [*daemon.arguments, "--leader-elect=true", f"--bind-address=$({ADDRESS_VARIABLE})"],
        "env": [address, *variables(environment)],
        "ports": [{"name": "secure", "containerPort": SECURE_PORT, "protocol": "TCP"}],
        "readinessProbe": _probe(daemon.ready_path, period=2),
        "livenessProbe": _probe("/healthz", period=10) | {"initialDelaySeconds": 15},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
    }


def _probe(path: str, *, period: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "secure", "scheme": "HTTPS"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": 3,
    }
