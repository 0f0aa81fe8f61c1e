"""Whether the CCM's ServiceAccount may do in Kubernetes what its controllers call."""

from __future__ import annotations

from collections.abc import Iterator

from cloud_controller import clouds
from cloud_controller.doctor.findings import Check, Finding
from cloud_controller.doctor.pod_http import is_loopback
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import SUBJECT_ACCESS_REVIEWS, Object
from cloud_controller.rbac import PolicyRule, Rules, rules


def _run(seen: Seen) -> Iterator[Finding]:
    workload = seen.workload()
    if workload is None:
        raise Unreadable("the CCM does not run in the cluster, so its ServiceAccount is not known")
    if not seen.ours():
        raise Unreadable("the rights that another project's CCM needs are not known")
    account = workload["spec"]["template"]["spec"].get("serviceAccountName") or "default"
    needed = _needed(seen)
    namespace = seen.argument("--leader-elect-resource-namespace", seen.target.namespace)
    missing = [
        *_missing(seen, account, needed.cluster, ""),
        *_missing(seen, account, needed.namespaced, namespace),
    ]
    if missing:
        yield Finding(
            subject=f"serviceaccount/{seen.target.namespace}/{account}",
            what=f"it lacks {len(missing)} of the rights that the CCM's controllers need",
            evidence=tuple(missing),
            remedy="grant them by the roles that `cloud-controller manifests` prints for the same options",
        )


def _needed(seen: Seen) -> Rules:
    daemon = seen.daemon()
    return rules(
        daemon.controllers,
        protected=not is_loopback(seen.argument("--bind-address", "127.0.0.1")),
        keeps_checkpoint=clouds.descriptor(daemon.cloud).keeps_checkpoint,
        readiness_gates=daemon.settings.service.gates is not None,
        lease=seen.lease_name(),
    )


def _missing(seen: Seen, account: str, needed: tuple[PolicyRule, ...], namespace: str) -> Iterator[str]:
    """What the account may not do of this; `namespace` empty: in all."""
    for rule in needed:
        # The table's rules have one group and one resource each; a name only where they are about one object.
        resource, _, subresource = rule.resources[0].partition("/")
        what = ".".join(filter(None, (resource, rule.api_groups[0]))) + (f"/{subresource}" if subresource else "")
        for name in rule.resource_names or ("",):
            refused = []
            for verb in rule.verbs:
                asked = {"verb": verb, "group": rule.api_groups[0], "resource": resource, "subresource": subresource}
                review = _review(seen.target.namespace, account, asked | {"name": name, "namespace": namespace})
                if not seen.review(SUBJECT_ACCESS_REVIEWS, review)["status"].get("allowed"):
                    refused.append(verb)
            if refused:
                yield f"{', '.join(refused)} {' '.join(filter(None, (what, name)))}" + (
                    f" in namespace {namespace}" if namespace else ""
                )


def _review(namespace: str, account: str, attributes: dict[str, str]) -> Object:
    return {
        "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "resourceAttributes": {key: value for key, value in attributes.items() if value},
        },
    }


CHECK = Check(
    name="kubernetes-rights",
    holds="the CCM's ServiceAccount may do what its controllers call",
    why="a controller that may not read or write its objects does nothing, and the CCM does not become ready",
    lines=("11.1.6", "10.1.1"),
    page="runbooks/kubernetes-rights.md",
    run=_run,
    after=frozenset({"api-server"}),
)
