"""Keeps a destroy from leaking load balancers and volumes: names them, or deletes them and waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from cloud_controller import unmanaged
from cloud_controller.binding import Binding
from cloud_controller.cloud import Cloud, Conflict, NotFound, Throttled, Unavailable
from cloud_controller.kube import ApiError, KubeApi, TooManyRequestsError, UnreachableError
from cloud_controller.safeguard import verify
from cloud_controller.unmanaged import Declared, Unmanaged

from .cluster_plan import NotConverged, Report, Wait

DELETE_UNMANAGED = "CLOUD_CONTROLLER_DELETE_UNMANAGED"
"""The environment variable that, set to `true`, lets a destroy delete what the program does not declare.

There is no such key in the stack's config: it would go on deleting at every later destroy.
"""

ANSWER_SECONDS = 30.0
"""How long an API server may take to answer: time for a killed control plane to restart."""
_PROBE_SECONDS = 5.0
_PAUSE = 0.5
_PASSING = (Conflict, Throttled, Unavailable, TooManyRequestsError, UnreachableError)


def clear(
    cloud: Cloud,
    open_kube: Callable[[], KubeApi],
    declared: Declared,
    binding: Binding,
    deadline: float,
    report: Report,
    *,
    delete: bool,
) -> None:
    """Return once nothing that the program does not declare holds a load balancer or a volume.

    Raises NotConverged, which names what does: at once, or, after `delete` has deleted it, when the deadline passes;
    and ForeignCluster if the API server belongs to another Kubernetes cluster than `binding` says.
    An API server that does not answer stops this only where the cloud has load balancers, which would be left behind.
    """
    _repeat(cloud, open_kube, deadline, report, lambda kube: _look(kube, cloud, declared, binding, delete=delete))


def clear_existing(
    cloud: Cloud,
    open_kube: Callable[[], KubeApi],
    declared: Declared,
    binding: Binding,
    deadline: float,
    report: Report,
    *,
    delete: bool,
    without_class: bool,
) -> None:
    """Return once the controller is in the midst of no deletion: the cluster is not the program's, and stays.

    Services and claims that the program does not declare are left as they are, with their load balancers and volumes,
    and reported: another controller may take them over. `without_class`: whether the controller serves Services without
    a class; if not, the cloud's own may be deleting those. Raises as `clear` does, and at once for `delete`.
    """
    if delete:
        raise NotConverged(
            f"{DELETE_UNMANAGED} (--delete-unmanaged) is only for clusters that the stack made. This one stays, with "
            "the Services and claims of others. Nothing was deleted. Run the destroy without it"
        )

    def look(kube: KubeApi) -> str:
        verify(kube, binding)
        found = unmanaged.find_served(kube, cloud, declared, without_class=without_class)
        return _missing_in_existing(found, kube, cloud, report)

    _repeat(cloud, open_kube, deadline, report, look)


def _repeat(
    cloud: Cloud,
    open_kube: Callable[[], KubeApi],
    deadline: float,
    report: Report,
    look: Callable[[KubeApi], str],
) -> None:
    """Look until nothing is missing, at most `deadline` seconds."""
    end = time.monotonic() + deadline
    wait = Wait(report)
    try:
        kube = _answering(open_kube, min(end, time.monotonic() + ANSWER_SECONDS), wait)
    except (*_PASSING, NotFound) as error:
        _require_none_in_cloud(cloud, error)
        report(f"could not read the cluster's Services ({error}); the cloud has no load balancer of the cluster")
        return
    with closing(kube):
        while True:
            try:
                missing = look(kube)
            except _PASSING as error:
                missing = str(error)
            if not missing:
                return
            if time.monotonic() > end:
                raise NotConverged(
                    f"the controller did not delete {missing} within {deadline:g} s; see the events of these objects. "
                    "Nothing of the stack was deleted"
                )
            wait.for_(f"the controller to delete {missing}")
            time.sleep(_PAUSE)


def _look(kube: KubeApi, cloud: Cloud, declared: Declared, binding: Binding, *, delete: bool) -> str:
    """What the controller still has to delete. Raises NotConverged where a person has to decide, and ForeignCluster."""
    verify(kube, binding)
    found = unmanaged.find(kube, declared)
    if found.present and not delete:
        raise NotConverged(
            "the program does not declare these objects, whose load balancers and volumes would stay in the cloud: "
            f"{', '.join(found.present)}. Nothing was deleted. Delete them, or let "
            f"`python -m local down --delete-unmanaged` ({DELETE_UNMANAGED}=true with Pulumi's CLI) do it. "
            "If a failed `up` created them, they count as declared after the next successful `up`"
        )
    if found.in_use:
        raise NotConverged(
            f"pods still use the volumes of claims that would be deleted: {', '.join(found.in_use)}. "
            "Nothing of the stack was deleted. First delete the workloads of these pods"
        )
    unmanaged.delete(kube, found)
    if missing := ", ".join((*found.present, *found.leaving)):
        return missing
    return _ownerless(kube, cloud)


def _missing_in_existing(found: Unmanaged, kube: KubeApi, cloud: Cloud, report: Report) -> str:
    """As `_look`, in a cluster that stays."""
    missing = ", ".join(found.leaving) or _ownerless(kube, cloud)
    if not missing and found.present:
        report(
            f"no controller of this stack will serve these objects any more: {', '.join(found.present)}. They keep "
            "their load balancers until another controller takes them over"
        )
    return missing


def _ownerless(kube: KubeApi, cloud: Cloud) -> str:
    """The load balancers without a Service that are being deleted. Raises NotConverged for those that would stay."""
    ownerless, leaving = unmanaged.ownerless(kube, cloud)
    if ownerless:
        raise NotConverged(
            f"load balancers whose Services are gone would stay in the cloud: {', '.join(ownerless)}. "
            "Nothing of the stack was deleted. `cloud-controller plan` shows why their deletion is held, and "
            "`cloud-controller confirm` releases it"
        )
    return ", ".join(leaving)


def _answering(open_kube: Callable[[], KubeApi], end: float, wait: Wait) -> KubeApi:
    """A client whose API server answers; raises the last error of the API server or the cloud."""
    while True:
        try:
            kube = open_kube()
            try:
                kube.with_timeout(_PROBE_SECONDS).version()
            except ApiError:
                kube.close()
                raise
            return kube
        except _PASSING as error:
            if time.monotonic() > end:
                raise
            wait.for_(f"the API server: {error}")
            time.sleep(_PAUSE)


def _require_none_in_cloud(cloud: Cloud, why: Exception) -> None:
    """Raise NotConverged if the cloud has load balancers of the cluster, declared or not: none of them can be deleted
    through their Services. `await_volumes` does the same for volumes.
    """
    if left := owners_in_cloud(cloud):
        raise NotConverged(
            f"the cluster does not answer ({why}), and the cloud still has the load balancers of Services "
            f"{', '.join(left)}. Nothing was deleted. Start its API server again or, if it is gone for good, delete "
            f"them with `cloud-controller cleanup --cluster-id {cloud.cluster_id}`"
        )


def owners_in_cloud(cloud: Cloud) -> list[str]:
    """The Services of the cluster whose load balancers the cloud shows. Raises CloudError."""
    found = cloud.load_balancers.read() if cloud.load_balancers is not None else ()
    owners = {owner for lb in found for owner in lb.owners if owner.cluster_id == cloud.cluster_id}
    return sorted(f"{owner.namespace}/{owner.name}" if owner.name else owner.uid for owner in owners)
