"""Before a cluster goes: which Services and claims hold something of the cloud that nobody would delete any more."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.controllers.service.rules import FINALIZER, FINALIZER_BESIDE_ANOTHER
from cloud_controller.kube import Object
from cloud_controller.unmanaged import Declared, Unmanaged, among

NOBODY = Declared()
GONE = "2026-01-01T00:00:00Z"


def service(name: str = "shop", *, type: str = "LoadBalancer", deleted: bool = False, **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **more}
    if deleted:
        metadata["deletionTimestamp"] = GONE
    return {"metadata": metadata, "spec": {"type": type}}


def claim(name: str = "data", *, deleted: bool = False, provisioner: str | None = None) -> Object:
    annotations = {"volume.kubernetes.io/storage-provisioner": provisioner} if provisioner else {}
    metadata: Object = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    if deleted:
        metadata["deletionTimestamp"] = GONE
    return {"metadata": metadata, "spec": {}}


def pv(of: str = "data", *, policy: str = "Delete", provisioned: bool = True, **source: Any) -> Object:
    annotations = {"pv.kubernetes.io/provisioned-by": "mycloud.io/volume"} if provisioned else {}
    spec = {"persistentVolumeReclaimPolicy": policy, "claimRef": {"uid": f"uid-{of}"}}
    source = source or {"csi": {"driver": "mycloud.io", "volumeHandle": "vol-1"}}
    return {"metadata": {"name": f"pvc-uid-{of}", "annotations": annotations}, "spec": {**spec, **source}}


def pod(*claims: str, name: str = "user", phase: str = "Running") -> Object:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"volumes": volumes},
        "status": {"phase": phase},
    }


def of_services(*services: Object, declared: Declared = NOBODY) -> Unmanaged:
    return among(services, [], [], [], declared)


def of_claims(claims: list[Object], pvs: list[Object], *pods: Object, declared: Declared = NOBODY) -> Unmanaged:
    return among([], claims, pvs, pods, declared)


def test_a_service_of_type_load_balancer_holds_a_load_balancer_whatever_its_class() -> None:
    foreign = service("theirs")
    foreign["spec"]["loadBalancerClass"] = "example.com/other"

    assert of_services(service(), foreign).present == ("Service default/shop", "Service default/theirs")


@pytest.mark.parametrize("type", ["ClusterIP", "NodePort", "ExternalName"])
def test_a_service_of_another_type_holds_no_load_balancer(type: str) -> None:
    assert of_services(service(type=type)) == Unmanaged()


@pytest.mark.parametrize("finalizer", [FINALIZER, FINALIZER_BESIDE_ANOTHER])
def test_a_service_of_another_type_with_our_finalizer_still_holds_a_load_balancer(finalizer: str) -> None:
    assert of_services(service(type="ClusterIP", finalizers=[finalizer])).present == ("Service default/shop",)


def test_an_unmanaged_service_is_described_with_its_address() -> None:
    serving = {**service(), "status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.9"}, {"hostname": "h.example"}]}}}

    assert of_services(serving).present == ("Service default/shop (127.0.0.9, h.example)",)


def test_declared_services_and_claims_are_not_unmanaged() -> None:
    declared = Declared(frozenset({"default/shop"}), frozenset({"default/data"}))

    found = among([service(), service("other")], [claim(), claim("more")], [pv(), pv("more")], [], declared)

    assert found.present == ("Service default/other", "PersistentVolumeClaim default/more")


def test_a_service_being_deleted_is_waited_for_even_if_declared() -> None:
    declared = Declared(frozenset({"default/shop"}))

    found = of_services(service(deleted=True), declared=declared)

    assert (found.present, found.leaving) == ((), ("Service default/shop",))


def test_a_claim_whose_volume_is_deleted_with_it_holds_a_volume() -> None:
    assert of_claims([claim()], [pv()]).present == ("PersistentVolumeClaim default/data",)


@pytest.mark.parametrize(
    "volume",
    [
        pv(policy="Retain"),
        pv(provisioned=False),
        pv(hostPath={"path": "/data"}),
    ],
    ids=["retained", "made by hand", "on a node"],
)
def test_a_claim_with_a_retained_or_foreign_volume_holds_no_volume(volume: Object) -> None:
    assert of_claims([claim()], [volume]) == Unmanaged()


def test_a_claim_that_waits_for_its_volume_counts_and_one_that_waits_for_a_pod_does_not() -> None:
    provisioning = claim("soon", provisioner="mycloud.io/volume")

    assert of_claims([provisioning, claim("later")], []).present == ("PersistentVolumeClaim default/soon",)


def test_claims_and_volumes_being_deleted_are_waited_for() -> None:
    found = of_claims([claim(deleted=True)], [pv(), pv("gone")])

    assert found.present == ()
    assert found.leaving == ("PersistentVolumeClaim default/data", "PersistentVolume pvc-uid-gone")


def test_a_volume_that_waits_for_any_claim_of_a_name_holds_up_nothing() -> None:
    # So an administrator gives a volume to a new claim: the old one's UID is removed.
    waiting = pv()
    waiting["spec"]["claimRef"] = {"namespace": "default", "name": "data"}

    assert of_claims([claim()], [waiting]) == Unmanaged()


def test_a_claim_in_use_is_reported_with_its_pods() -> None:
    found = of_claims([claim()], [pv()], pod("data"), pod("data", name="second"))

    assert found.in_use == ("PersistentVolumeClaim default/data by pod user, second",)


def test_a_pod_that_has_ended_uses_no_claim() -> None:
    assert of_claims([claim()], [pv()], pod("data", phase="Succeeded")).in_use == ()


def test_a_pods_ephemeral_volume_is_a_claim_that_it_uses() -> None:
    user = pod()
    user["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {}}]

    found = of_claims([claim("user-scratch")], [pv("user-scratch")], user)

    assert found.in_use == ("PersistentVolumeClaim default/user-scratch by pod user",)
