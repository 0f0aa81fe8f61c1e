"""How one action of a service plan is carried out, on the cloud's side or on Kubernetes'."""

from __future__ import annotations

from typing import assert_never

from cloud_controller.controllers.service_plan import FINALIZER, AddFinalizer, RemoveFinalizer, SetIngress
from cloud_controller.kube import SERVICES, Kube, Object, PatchType
from cloud_controller.load_balancer_operations import LoadBalancers, Operation, carry_out
from cloud_controller.plan import Action

KubeOperation = AddFinalizer | RemoveFinalizer | SetIngress


def apply_action(action: Action, kube: Kube, load_balancers: LoadBalancers) -> Object | None:
    """Carry out one action; the Service as it is then, where the action was about the object itself.

    Every action may be repeated. Raises the errors of `cloud_controller.cloud` and of `kube`: NotFoundError if the
    Service itself is gone, which ends its plan (nothing is made for it; what was made is an orphan by then).
    """
    operation = action.operation
    if isinstance(operation, KubeOperation):
        return _change_service(kube, operation)
    if not isinstance(operation, Operation):
        raise TypeError(f"{action.target}: {type(operation).__name__} is no operation of a service plan")
    carry_out(load_balancers, operation)
    return None


def _change_service(kube: Kube, operation: KubeOperation) -> Object:
    namespace, name = operation.namespace, operation.name
    # With the UID in it, the patch is refused for another Service that took the name meanwhile.
    metadata: dict[str, object] = {"uid": operation.uid}
    patch: dict[str, object]
    match operation:
        # These merge with the finalizers of others, whatever they are by now.
        case AddFinalizer():
            patch = {"metadata": {**metadata, "finalizers": [FINALIZER]}}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.STRATEGIC)
        case RemoveFinalizer():
            patch = {"metadata": {**metadata, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.STRATEGIC)
        case SetIngress(ingress=ingress):
            status = {"loadBalancer": {"ingress": [*ingress]} if ingress else None}
            patch = {"metadata": metadata, "status": status}
            return kube.patch(SERVICES, name, patch, namespace, type=PatchType.MERGE, subresource="status")
        case _:
            assert_never(operation)
