"""Which changes of an object's inputs happen in place and which ones replace it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from local.plugins import paths
from local.plugins.differences import differences
from local.plugins.kubernetes.api_types import ApiType
from local.plugins.kubernetes.check import REPLACE_UNREADY, annotation, is_autonamed
from local.plugins.kubernetes.conditions import judge_of
from local.plugins.provider import DiffKind, DiffResult, PropertyDiff
from local.plugins.values import PropertyMap

# Fields that the API server makes immutable, and the data of ConfigMaps and Secrets, which Pulumi's provider replaces
# so that the new name restarts the pods that use them.
_METADATA = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
_REPLACING: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "ConfigMap"): ("data", "binaryData", "immutable"),
    ("", "Secret"): ("data", "stringData", "immutable", "type"),
    ("", "Service"): ("spec.clusterIP",),
    ("", "PersistentVolume"): ("spec.csi", "spec.hostPath", "spec.nfs", "spec.local", "spec.nodeAffinity"),
    ("", "PersistentVolumeClaim"): (
        "spec.accessModes",
        "spec.selector",
        "spec.storageClassName",
        "spec.volumeMode",
        "spec.volumeName",
    ),
    ("", "Pod"): ("spec",),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "StatefulSet"): (
        "spec.podManagementPolicy",
        "spec.selector",
        "spec.serviceName",
        "spec.volumeClaimTemplates",
    ),
    ("batch", "Job"): ("spec.completions", "spec.selector", "spec.template"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}
# The mutable fields of a Pod's spec.
_POD_IN_PLACE = ("spec.activeDeadlineSeconds", "spec.tolerations", "spec.terminationGracePeriodSeconds")
_MUTABLE_DATA = ("data", "binaryData", "stringData")

_REPLACE = {
    DiffKind.ADD: DiffKind.ADD_REPLACE,
    DiffKind.DELETE: DiffKind.DELETE_REPLACE,
    DiffKind.UPDATE: DiffKind.UPDATE_REPLACE,
}


def diff_inputs(
    api: ApiType, olds: PropertyMap, news: PropertyMap, ignored: Sequence[str], *, mutable_data: bool
) -> DiffResult:
    """The differences between new and old inputs, by field.

    `mutable_data`: a ConfigMap's or Secret's data changes in place (the provider options enableConfigMapMutable and
    enableSecretMutable). A replacement, whatever its cause, deletes first if both objects have the same name.
    """
    forced = [paths.parse(path) for path in (*_METADATA, *_replacing(api, olds, mutable_data))]
    in_place = [paths.parse(path) for path in _POD_IN_PLACE] if api.kind == "Pod" else []
    skipped = [paths.parse(path) for path in ignored]
    detailed: dict[str, PropertyDiff] = {}
    replaces = []
    for text, change in differences(olds, news).items():
        path = paths.parse(text)
        if any(paths.holds(skip, path) for skip in skipped):
            continue
        if _hits(forced, path) and not _hits(in_place, path):
            replaces.append(text)
            change = PropertyDiff(_REPLACE[change.kind], change.input_diff)
        detailed[text] = change
    top_level = tuple(dict.fromkeys(str(paths.parse(text)[0]) for text in detailed))
    same_name = _identity(olds) == _identity(news) and not is_autonamed(news)
    return DiffResult(
        changed=bool(detailed),
        replaces=tuple(replaces),
        diffs=top_level,
        detailed=detailed,
        delete_before_replace=same_name,
    )


def wants_replacement(api: ApiType, news: PropertyMap) -> bool:
    """Whether the object is to be replaced unless it is ready (`pulumi.com/replaceUnready`); only Jobs can be."""
    return (api.group, api.kind) == ("batch", "Job") and annotation(news, REPLACE_UNREADY) == "true"


def replaced_if_unready(api: ApiType, result: DiffResult, live: Mapping[str, Any], news: PropertyMap) -> DiffResult:
    """The difference, or a replacement if the live object is not ready.

    A failed Job stays failed: no change in place runs it again.
    """
    judge = judge_of(api.api_version, api.kind)
    if judge is None or judge(live).ready:
        return result
    return replace(
        result,
        changed=True,
        replaces=(*result.replaces, "status"),
        detailed={**result.detailed, "status": PropertyDiff(DiffKind.UPDATE_REPLACE, input_diff=False)},
        delete_before_replace=not is_autonamed(news),
    )


def _replacing(api: ApiType, olds: PropertyMap, mutable_data: bool) -> tuple[str, ...]:
    fields = _REPLACING.get((api.group, api.kind), ())
    in_place = set(_MUTABLE_DATA if mutable_data else ())
    if olds.get("immutable") is not True:
        in_place.add("immutable")  # It may be set, and omitted if it was never set.
    return tuple(field for field in fields if field not in in_place)


def _hits(patterns: Sequence[paths.Path], path: paths.Path) -> bool:
    return any(paths.covers(pattern, path) for pattern in patterns)


def _identity(inputs: PropertyMap) -> tuple[object, object]:
    metadata = inputs.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return metadata.get("namespace"), metadata.get("name")
