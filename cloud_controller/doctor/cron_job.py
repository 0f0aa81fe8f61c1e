"""The Kubernetes objects that run `cloud-controller doctor` on a schedule, beside the CCM and with rights to read only.

Pure: the Pulumi program and `cloud-controller manifests` share them. The pods get the daemon's cloud config, and so its
rights in the cloud, unless it has them by a role: then doctor has another, which may only read. The command writes to
neither the cloud nor the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from cloud_controller import manifests, pod_network, rbac
from cloud_controller.clouds.descriptor import PodIdentity
from cloud_controller.manifests import CONFIG_SECRET, DOCTOR, NAME, Manifest, Text
from cloud_controller.rbac import PolicyRule, Rules

GATEWAY = "a URL without credentials, such as http://pushgateway.monitoring:9091"
"""What a gateway may be."""
_DEADLINE = 600
"""Seconds for a run; it takes some seconds where everything answers."""
_LATE = 300
"""Seconds by which a run may start late, after which it is left out."""

# (API group, resource): verbs.
_CLUSTER: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "events"): ("list",),
    ("", "nodes"): ("list",),
    ("", "services"): ("list",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",),
    ("discovery.k8s.io", "endpointslices"): ("list",),
}


def rights(daemon: Rules, lease: str = rbac.LEASE_NAME) -> Rules:
    """The least rights for all checks of a daemon that has these rights: it plans what the daemon would do."""
    verbs = dict(_CLUSTER)
    for rule in daemon.cluster:
        if "list" in rule.verbs:
            verbs.setdefault((rule.api_groups[0], rule.resources[0]), ("list",))
    cluster = (
        # The UID of this namespace is the cluster's identity.
        PolicyRule(("",), ("namespaces",), ("get",), (rbac.LEASE_NAMESPACE,)),
        *(PolicyRule((group,), (resource,), verbs[group, resource]) for group, resource in sorted(verbs)),
    )
    namespaced = (
        PolicyRule(("",), ("configmaps",), ("get",), ("kube-proxy",)),
        PolicyRule(("",), ("pods",), ("list",)),
        # What the CCM's pods serve, and why they ended. Names of pods are not known before.
        PolicyRule(("",), ("pods/log", "pods/proxy"), ("get",)),
        # The pods have it mounted; here it is about its annotation.
        PolicyRule(("",), ("secrets",), ("get",), (CONFIG_SECRET,)),
        PolicyRule(("apps",), ("daemonsets", "deployments"), ("get",), (NAME,)),
        PolicyRule(("coordination.k8s.io",), ("leases",), ("get",), (lease,)),
        # Those of this namespace keep the CCM's pods from what they need.
        PolicyRule(("networking.k8s.io",), ("networkpolicies",), ("list",)),
    )
    return Rules(cluster, namespaced)


def make(
    daemon: manifests.Daemon,
    schedule: str,
    *,
    cloud: str,
    lease: str,
    on_control_plane: bool,
    environment: Mapping[str, Text] | None = None,
    push_gateway: str | None = None,
    identity: PodIdentity | None = None,
) -> Iterator[Manifest]:
    """All objects, in the order in which to create them.

    - `schedule`: as of a CronJob, in UTC.
    - `daemon`: the one that is examined, with whose image it runs.
    - `push_gateway`: the URL at which the findings become metrics (`gateway_port`).
    - `identity`: its role in the cloud, where the CCM's pods have one.
    """
    labels = {"k8s-app": DOCTOR}
    rules = rights(daemon.rules, lease)
    arguments = [
        "doctor",
        f"--cloud={cloud}",
        f"--cloud-config={manifests.CONFIG_PATH}",
        # A word of its own: another name of the CCM's objects replaces it.
        "--workload",
        NAME,
        f"--leader-elect-resource-name={lease}",
        *([f"--push-gateway={push_gateway}"] if push_gateway else []),
    ]
    account, *bound = manifests.account_with(DOCTOR, labels, rules)
    annotated = {"annotations": dict(identity.annotations)} if identity else {}
    yield account | {"metadata": account["metadata"] | annotated}
    yield from bound
    if daemon.metadata is not None:
        port = gateway_port(push_gateway) if push_gateway else None
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": DOCTOR, "namespace": manifests.NAMESPACE, "labels": labels},
            "spec": pod_network.policy(labels, (), daemon.metadata, [port] if port else []),
        }
    given = {**(identity.environment if identity else {}), **(environment or {})}
    spec = manifests.pod_spec(
        {
            "name": DOCTOR,
            "image": daemon.image,
            "args": arguments,
            **({"env": manifests.variables(given)} if given else {}),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        },
        account=DOCTOR,
        on_control_plane=on_control_plane,
        host_network=daemon.metadata is None,
        identity=identity,
    )
    job = {
        # Findings end a run with an error; the next run is soon enough.
        "backoffLimit": 0,
        "activeDeadlineSeconds": _DEADLINE,
        "template": {"metadata": {"labels": labels}, "spec": spec | {"restartPolicy": "Never"}},
    }
    yield {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": DOCTOR, "namespace": manifests.NAMESPACE, "labels": labels},
        "spec": {
            "schedule": schedule,
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": _LATE,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"labels": labels}, "spec": job},
        },
    }


def gateway_port(url: str) -> int | None:
    """The port of the Pushgateway at a URL, whose scheme may be missing; None if it is not one (`GATEWAY`)."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    # With credentials, nothing could be pushed; and a CronJob's arguments are no place for them.
    return port if parts.hostname and "@" not in parts.netloc else None


def is_schedule(schedule: str) -> bool:
    """Whether a text may be a CronJob's schedule; what its fields mean is the API server's to judge."""
    return len(schedule.split()) == 5
