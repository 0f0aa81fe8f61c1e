"""The dynamic resource DestroyGuard: a destroy deletes it first, and fails there if anything would leak.

A destroy ends the cluster's controller. Load balancers and volumes of Services and claims that the program does not
declare would stay in the cloud for ever. So the guard depends on everything else of the stack: a destroy begins with
its `delete`, which names them and fails or, on request, deletes them and waits (`cluster_end`).

As with `CloudController`, the provider is unpickled by reference: keep it importable here, without attributes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    UpdateResult,
)
from pulumi.output import Unknown

from .dynamic_provider import DynamicProvider
from .inputs import deadline_problem

Properties = dict[str, Any]

DEFAULT_DEADLINE = 300.0
"""Seconds for the controllers to delete what is not declared."""

_REPLACING = ("cloud", "cluster_id", "network_id")
_COMPARED = (*_REPLACING, "cluster_uid", "services", "claims", "existing", "without_class", "deadline")


class DestroyGuardProvider(DynamicProvider):
    """See the module. Only `delete` changes anything."""

    def check(self, _olds: Properties, news: Properties) -> CheckResult:
        # Only a destroy reads it, which is too late to say so.
        wrong = deadline_problem(news.get("deadline"))
        return CheckResult(news, [CheckFailure("deadline", wrong)] if wrong else [])

    def diff(self, _id: str, _olds: Properties, _news: Properties) -> DiffResult:
        changed = [name for name in _COMPARED if _olds.get(name) != _news.get(name)]
        if "cluster_uid" in changed and isinstance(_news["cluster_uid"], Unknown):
            changed.remove(
                "cluster_uid"
            )  # In a preview in which `CloudController` changes. It is most likely the same.
        return DiffResult(bool(changed), [name for name in changed if name in _REPLACING])

    def create(self, props: Properties) -> CreateResult:
        return CreateResult(str(props["cluster_id"]), props)

    def update(self, _id: str, _olds: Properties, _news: Properties) -> UpdateResult:
        return UpdateResult(_news)

    def read(self, id_: str, props: Properties) -> ReadResult:
        from cloud_controller.cloud import CloudError, NotFound

        from . import cluster_access, cluster_end

        try:
            cloud = cluster_access.open_cloud(self._config, props)
            try:
                cluster_access.open_kube(self._config, props, cloud).close()
            except NotFound:
                # No access may also be a wrong account, or a lost secret: what there is to guard shows in the cloud.
                if not cluster_end.owners_in_cloud(cloud):
                    return ReadResult(None, {})
        except CloudError:
            pass  # The cluster may be there: `delete` looks again.
        return ReadResult(id_, props)

    def delete(self, _id: str, _props: Properties) -> None:
        from cloud_controller.binding import Binding
        from cloud_controller.unmanaged import Declared

        from . import cluster_access, cluster_end

        clear: Callable[..., None] = cluster_end.clear
        if _props.get("existing"):
            clear = partial(cluster_end.clear_existing, without_class=_props.get("without_class") is not False)
        cloud = cluster_access.open_cloud(self._config, _props)
        clear(
            cloud,
            lambda: cluster_access.open_kube(self._config, _props, cloud),
            Declared(frozenset(_props["services"]), frozenset(_props["claims"])),
            # A state from before there was this input has none.
            Binding(_props.get("cluster_uid") or ""),
            float(_props["deadline"]),
            _report,
            delete=os.environ.get(cluster_end.DELETE_UNMANAGED) == "true",
        )


def _report(text: str) -> None:
    # The engine shows what the provider's process prints while the step runs; a provider has no other way to log.
    print(f"DestroyGuard: {text}", flush=True)


class DestroyGuard(Resource, module="cloudcontroller", name="DestroyGuard"):
    """Stops a destroy that would leak load balancers and volumes; type `…dynamic/cloudcontroller:DestroyGuard`.

    `opts.depends_on` must lead to every other resource of the cluster, so that this one is deleted first. `services`
    and `claims` are those that the program declares, as NAMESPACE/NAME (which is a resource's id): they are deleted in
    their turn. `cluster_uid` is `CloudController`'s: in another Kubernetes cluster, nothing is looked for or deleted.

    `existing`: the cluster is not the program's, and stays. Then Services and claims that the program does not declare
    stay too, and only deletions that have begun are waited for. `without_class`: whether the CCM serves Services
    without a class; if not, their deletions are not waited for.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        cloud: pulumi.Input[str],
        cluster_id: pulumi.Input[str],
        network_id: pulumi.Input[str],
        cluster_uid: pulumi.Input[str],
        services: Sequence[pulumi.Input[str]] = (),
        claims: Sequence[pulumi.Input[str]] = (),
        existing: bool = False,
        without_class: bool = True,
        deadline: pulumi.Input[float] = DEFAULT_DEADLINE,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "cloud": cloud,
            "cluster_id": cluster_id,
            "network_id": network_id,
            "cluster_uid": cluster_uid,
            "services": list(services),
            "claims": list(claims),
            "deadline": deadline,
            # None is no input: states from before there was this one do not change.
            "existing": existing or None,
            "without_class": None if without_class else False,
        }
        super().__init__(DestroyGuardProvider(), resource_name, props, opts)
