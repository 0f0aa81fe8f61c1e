"""Which volumes are made, handed over, attached, resized, deleted or only reported."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from cloud_controller.binding import Binding
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.controllers.volume import objects as view
from cloud_controller.controllers.volume.observation import (
    PROVIDER_ID,
    VOLUME_ID,
    VolumeObservation,
    leaving,
    related,
    rests_on_absence,
    to_read,
)
from cloud_controller.controllers.volume.operations import (
    AttachVolume,
    CreatePersistentVolume,
    CreateVolume,
    DeletePersistentVolume,
    DeleteVolume,
    DetachVolume,
    DiscardVolume,
    Refuse,
    ReleaseAttachment,
    ReselectNode,
    ResizeVolume,
    SetAttached,
    SetAttachError,
    SetCapacity,
    SetClaimCapacity,
    SetFinalizer,
    SetTopology,
    TagVolume,
    Wait,
)
from cloud_controller.controllers.volume.plan import plan
from cloud_controller.kube import Object
from cloud_controller.load_balancers.model import CLUSTER_TAG, CLUSTER_UID_TAG
from cloud_controller.plan import Action, ActionKind
from cloud_controller.volumes import (
    CLAIM_TAG,
    CLAIM_UID_TAG,
    PV_TAG,
    Attachment,
    AttachmentState,
    ClaimOwner,
    Volume,
    VolumeState,
)

PROVISIONER, DRIVER, CLUSTER = "cloud.example/volume", "cloud.example", "c-1"
MACHINE = "cloud://local/zone-b/i-1"
ATTACHER = "external-attacher/cloud-example"
GONE = "2026-01-01T00:00:00Z"

# ------------------------------------------------------------------------------------------------------- factories


def storage_class(**more: Any) -> Object:
    return {
        "metadata": {"name": "disks", "resourceVersion": "1"},
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
        **more,
    }


IMMEDIATE = storage_class(volumeBindingMode="Immediate")


def claim(name: str = "data", *, node: str | None = "worker", size: str = "5Gi", **spec: Any) -> Object:
    annotations = {view.PROVISIONER_ANNOTATIONS[0]: PROVISIONER}
    if node:
        annotations[view.SELECTED_NODE] = node
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disks",
            "resources": {"requests": {"storage": size}},
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def bound(made: Object, *, has: str) -> Object:
    """The claim as kube-controller-manager leaves it once its PersistentVolume stands."""
    volume_name = view.pv_name(made["metadata"]["uid"])
    status = {"phase": "Bound", "capacity": {"storage": has}}
    return {**made, "spec": {**made["spec"], "volumeName": volume_name}, "status": status}


def node(name: str = "worker", *, zone: str | None = "zone-b", control_plane: bool = False) -> Object:
    labels = {view.ZONE: zone, view.REGION: "local"} if zone else {}
    if control_plane:
        labels["node-role.kubernetes.io/control-plane"] = ""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"providerID": MACHINE} if zone else {}}


def volume(**more: Any) -> Volume:
    tags = ClaimOwner(CLUSTER, "uid-data", "default", "data").tags
    made = Volume("vol-1", "pvc-uid-data", "zone-b", "local", 5, VolumeState.AVAILABLE, tags=tags)
    return replace(made, **more)


def handed_over(**more: Any) -> Volume:
    return volume(**{"tags": {**volume().tags, PV_TAG: "pvc-uid-data"}, **more})


def at_machine(state: AttachmentState) -> tuple[Attachment, ...]:
    return (Attachment(MACHINE, state),)


def pv(*, phase: str = "Bound", policy: str = "Delete", gone: bool = False, finalizer: bool = True) -> Object:
    made = view.persistent_volume(claim(), storage_class(), volume(), driver=DRIVER, provisioner=PROVISIONER)
    made["spec"]["persistentVolumeReclaimPolicy"] = policy
    made["metadata"]["finalizers"] = [view.PV_FINALIZER] if finalizer else []
    if gone:
        made["metadata"]["deletionTimestamp"] = GONE
    made["status"] = {"phase": phase}
    return made


def static_pv(**spec: Any) -> Object:
    made = pv(finalizer=False, policy="Retain")
    made["metadata"] = {"name": "by-hand", "labels": {}}
    made["spec"] = {**made["spec"], "nodeAffinity": None, **spec}
    return made


def attachment(*, attached: bool = False, gone: bool = False, held: bool = True, noted: bool = True) -> Object:
    metadata: Object = {"name": "csi-1", "annotations": {}, "finalizers": [ATTACHER] if held else []}
    if noted:
        metadata["annotations"] = {VOLUME_ID: "vol-1", PROVIDER_ID: MACHINE}
    if gone:
        metadata["deletionTimestamp"] = GONE
    source = {"persistentVolumeName": "pvc-uid-data"}
    return {
        "metadata": metadata,
        "spec": {"attacher": DRIVER, "nodeName": "worker", "source": source},
        "status": {"attached": attached},
    }


def world(*objects: Object | Volume, **more: Any) -> VolumeObservation:
    """An observation of these objects, each told by its shape, a StorageClass and a node unless others are given."""
    found: dict[str, list[Object]] = {"claims": [], "pvs": [], "classes": [], "attachments": [], "nodes": []}
    volumes: dict[str, Volume] = {}
    for each in objects:
        if isinstance(each, Volume):
            volumes[each.id] = each
        elif "provisioner" in each:
            found["classes"].append(each)
        elif "attacher" in each["spec"]:
            found["attachments"].append(each)
        elif "csi" in each["spec"]:
            found["pvs"].append(each)
        elif "resources" in each["spec"]:
            found["claims"].append(each)
        else:
            found["nodes"].append(each)
    found["classes"] = found["classes"] or [storage_class()]
    found["nodes"] = found["nodes"] or [node()]
    return VolumeObservation(
        cluster_id=CLUSTER,
        provisioner=PROVISIONER,
        driver=DRIVER,
        parameters={"type": ("standard",)},
        largest_gib=100,
        claims=tuple(found["claims"]),
        pvs=tuple(found["pvs"]),
        classes=tuple(found["classes"]),
        attachments=tuple(found["attachments"]),
        nodes=tuple(found["nodes"]),
        volumes=volumes,
        **more,
    )


def only(observation: VolumeObservation) -> Action:
    (action,) = plan(observation)
    return action


def operation(observation: VolumeObservation) -> Any:
    return only(observation).operation


def refusal(observation: VolumeObservation) -> str:
    action = only(observation)
    assert action.kind is ActionKind.IGNORE
    assert isinstance(action.operation, Refuse)
    return action.operation.message


# --------------------------------------------------------------------------------------------------------- claims


def test_a_claim_gets_a_volume_in_the_zone_of_its_consumers_node() -> None:
    made = operation(world(claim()))

    assert isinstance(made, CreateVolume)
    assert (made.request.zone, made.request.size_gib) == ("zone-b", 5)
    assert made.request.tags[CLAIM_UID_TAG] == "uid-data"
    assert made.request.tags[CLAIM_TAG] == "default/data"


def test_the_token_of_a_claims_volume_is_the_same_each_time() -> None:
    first, second = operation(world(claim())), operation(world(claim(), node(zone="zone-c")))

    assert first.request.client_token == second.request.client_token


@pytest.mark.parametrize(
    "other",
    [
        claim(node=None),
        claim(volumeName="another"),
        {**claim(), "metadata": {**claim()["metadata"], "annotations": {}}},
        {**claim(), "metadata": {**claim()["metadata"], "deletionTimestamp": GONE}},
    ],
    ids=["no consumer yet", "bound", "not ours to serve", "being deleted"],
)
def test_a_claim_that_asks_for_nothing_now_is_left_alone(other: Object) -> None:
    assert len(plan(world(other))) == 0


def test_an_immediate_claim_does_not_wait_for_a_consumer() -> None:
    made = operation(world(claim(node=None), IMMEDIATE))

    assert made.request.zone == "zone-b"


def test_an_immediate_claims_zone_is_one_of_workers_that_the_class_allows() -> None:
    allowed = [{"matchLabelExpressions": [{"key": view.ZONE, "values": ["zone-a", "zone-c", "zone-x"]}]}]
    nodes = [node("m", zone="zone-a", control_plane=True), node("b", zone="zone-b"), node("c", zone="zone-c")]
    observation = world(claim(node=None), {**IMMEDIATE, "allowedTopologies": allowed}, *nodes)

    assert operation(observation).request.zone == "zone-c"


def test_an_immediate_claim_whose_class_lets_no_node_in_is_told_where_nodes_are() -> None:
    terms = [{"matchLabelExpressions": [{"key": view.ZONE, "values": ["zone-x"]}]}]
    nowhere = storage_class(volumeBindingMode="Immediate", allowedTopologies=terms)

    told = refusal(world(claim(node=None), nowhere, node(zone="zone-a"), node("other", zone="zone-b")))

    assert told == "StorageClass disks: allowedTopologies: no node matches; nodes are in zone-a, zone-b"


def test_the_claims_of_a_stateful_set_are_spread_over_zones() -> None:
    nodes = [node(zone, zone=zone) for zone in ("zone-a", "zone-b", "zone-c")]
    claims = [claim(f"data-web-{ordinal}", node=None) for ordinal in range(3)]

    zones = {action.operation.request.zone for action in plan(world(*claims, IMMEDIATE, *nodes))}  # type: ignore[attr-defined]

    assert zones == {"zone-a", "zone-b", "zone-c"}


def test_a_claim_whose_node_is_gone_is_scheduled_anew() -> None:
    assert isinstance(operation(world(claim(node="gone"))), ReselectNode)


def test_a_claim_whose_node_is_not_initialised_waits() -> None:
    action = only(world(claim(), node(zone=None)))

    assert action.kind is ActionKind.IGNORE
    assert "not initialised" in str(action.reason)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"accessModes": ["ReadWriteMany"]}, "spec.accessModes: ReadWriteMany .*: ReadWriteOnce, ReadWriteOncePod\\)"),
        ({"volumeMode": "Block"}, "spec.volumeMode: Block .* \\(allowed: Filesystem\\)"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "spec.selector: .*"),
        ({"dataSource": {"kind": "VolumeSnapshot", "name": "x"}}, "spec.dataSource: .*"),
    ],
)
def test_an_unsupported_claim_field_is_an_error_that_names_it(spec: dict[str, Any], told: str) -> None:
    assert re.fullmatch(told, refusal(world(claim(**spec))))


def test_a_volume_that_only_one_pod_may_have_is_made_like_others_and_says_so() -> None:
    made = operation(world(claim(accessModes=["ReadWriteOncePod"]), volume()))

    assert made.pv["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_a_claim_for_more_than_the_largest_volume_has_is_refused() -> None:
    told = "spec.resources.requests.storage: 5Ti exceeds the maximum volume size (allowed: up to 100Gi)"

    assert refusal(world(claim(size="5Ti"))) == told


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"tpye": "standard"}, "StorageClass disks: parameters.tpye: unknown parameter; did you mean 'type'?"),
        (
            {"type": "standrad"},
            "StorageClass disks: parameters.type: invalid value 'standrad'; did you mean 'standard'?",
        ),
        ({"iops": "5"}, "StorageClass disks: parameters.iops: unknown parameter (allowed: type)"),
    ],
)
def test_a_wrong_parameter_of_the_class_is_refused_with_the_nearest(parameters: dict[str, str], told: str) -> None:
    assert refusal(world(claim(), storage_class(parameters=parameters))).startswith(told)


def test_an_invalid_claim_does_not_affect_other_claims() -> None:
    found = plan(world(claim("bad", accessModes=["ReadWriteMany"]), claim("good")))

    assert [action.target for action in found.changes] == ["claim/default/good"]


def test_a_claim_waits_while_its_volume_is_being_made() -> None:
    assert isinstance(operation(world(claim(), volume(state=VolumeState.CREATING))), Wait)


def test_a_volume_that_is_there_is_handed_to_its_claim_and_never_made_twice() -> None:
    made = operation(world(claim(), volume()))

    assert isinstance(made, CreatePersistentVolume)
    spec, metadata = made.pv["spec"], made.pv["metadata"]
    assert metadata["name"] == "pvc-uid-data"
    assert metadata["labels"] == {view.ZONE: "zone-b", view.REGION: "local"}
    assert metadata["annotations"] == {view.PROVISIONED_BY: PROVISIONER}
    assert metadata["finalizers"] == [view.PV_FINALIZER]
    assert spec["claimRef"]["uid"] == "uid-data"
    assert spec["csi"] == {"driver": DRIVER, "volumeHandle": "vol-1"}
    assert spec["capacity"] == {"storage": "5Gi"}
    assert spec["accessModes"] == ["ReadWriteOnce"]
    assert spec["persistentVolumeReclaimPolicy"] == "Delete"
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": view.ZONE, "operator": "In", "values": ["zone-b"]}]


@pytest.mark.parametrize(
    "useless",
    [volume(state=VolumeState.FAILED, state_reason="no space"), volume(zone="zone-a")],
    ids=["failed", "left from a node in another zone"],
)
def test_a_volume_that_the_claim_cannot_use_is_removed_for_a_new_one(useless: Volume) -> None:
    assert isinstance(operation(world(claim(), useless)), DiscardVolume)


def test_a_volume_that_had_a_persistent_volume_is_the_claims_wherever_it_lies() -> None:
    assert isinstance(operation(world(claim(), handed_over(zone="zone-a"))), CreatePersistentVolume)


def test_a_volume_that_had_a_persistent_volume_is_never_deleted_for_a_new_one() -> None:
    assert "already had a PersistentVolume" in refusal(world(claim(), handed_over(state=VolumeState.FAILED)))


def test_a_claim_with_its_persistent_volume_is_served() -> None:
    assert len(plan(world(claim(), pv(phase="Pending"), handed_over()))) == 0


# --------------------------------------------------------------------------------------------------------- resize


def test_a_claim_that_asks_for_more_lets_the_volume_grow_first() -> None:
    made = operation(world(bound(claim(size="7Gi"), has="5Gi"), pv(), handed_over()))

    assert isinstance(made, ResizeVolume)
    assert made.size_gib == 7


def test_a_resize_updates_the_persistent_volume_after_the_volume() -> None:
    made = operation(world(bound(claim(size="7Gi"), has="5Gi"), pv(), handed_over(size_gib=7)))

    assert isinstance(made, SetCapacity)
    assert made.size == "7Gi"


def test_a_resize_updates_the_claim_last() -> None:
    grown = pv()
    grown["spec"]["capacity"] = {"storage": "7Gi"}

    made = operation(world(bound(claim(size="7Gi"), has="5Gi"), grown, handed_over(size_gib=7)))

    assert isinstance(made, SetClaimCapacity)
    assert made.size == "7Gi"


def test_parts_of_a_gib_are_rounded_up_once_and_for_all() -> None:
    grown = pv()
    grown["spec"]["capacity"] = {"storage": "6Gi"}

    assert len(plan(world(bound(claim(size="5500Mi"), has="6Gi"), grown, handed_over(size_gib=6)))) == 0


def test_a_claim_that_requests_a_smaller_size_keeps_its_size_with_a_warning() -> None:
    grown = pv()
    grown["spec"]["capacity"] = {"storage": "9Gi"}

    found = plan(world(bound(claim(size="6Gi"), has="5Gi"), grown, handed_over(size_gib=9)))

    kinds = {type(action.operation): action for action in found}
    assert "cannot shrink" in str(kinds[Refuse].reason)
    assert kinds[SetClaimCapacity].changes[0].after == "9Gi"


def test_a_claim_that_asks_for_more_than_there_is_stays_as_it_is() -> None:
    told = refusal(world(bound(claim(size="2000Ti"), has="5Gi"), pv(), handed_over()))

    assert told.startswith("spec.resources.requests.storage: 2000Ti exceeds the maximum")


def test_a_claim_whose_class_forbids_expansion_is_not_resized() -> None:
    observation = world(
        bound(claim(size="7Gi"), has="5Gi"), pv(), handed_over(), storage_class(allowVolumeExpansion=False)
    )

    assert "does not allow" in refusal(observation)


# ----------------------------------------------------------------------------------------------- PersistentVolumes


def test_a_volume_is_tagged_once_its_persistent_volume_exists() -> None:
    assert isinstance(operation(world(pv(), volume())), TagVolume)


@pytest.mark.parametrize(("policy", "finalizer", "wanted"), [("Delete", False, True), ("Retain", True, False)])
def test_the_finalizer_follows_the_reclaim_policy(policy: str, finalizer: bool, wanted: bool) -> None:
    made = operation(world(pv(policy=policy, finalizer=finalizer), handed_over()))

    assert isinstance(made, SetFinalizer)
    assert made.present is wanted


def test_a_retained_persistent_volume_keeps_its_finalizer_until_its_volume_is_tagged() -> None:
    found = plan(world(pv(policy="Retain"), volume()))

    assert [type(action.operation) for action in found] == [TagVolume]


def test_a_released_persistent_volume_with_policy_delete_loses_its_volume_first() -> None:
    assert isinstance(operation(world(pv(phase="Released"), handed_over())), DeleteVolume)


def test_a_released_persistent_volume_is_deleted_once_its_volume_is_gone() -> None:
    assert isinstance(operation(world(pv(phase="Released"))), DeletePersistentVolume)


@pytest.mark.parametrize("left", [pv(phase="Released"), attachment(gone=True)], ids=["its object", "its attachment"])
def test_a_volume_that_another_account_does_not_have_holds_the_end_of(left: Object) -> None:
    observation = world(left, anchored=False)

    assert rests_on_absence(observation)
    assert only(observation).held
    assert plan(observation).changes == ()


@pytest.mark.parametrize("left", [pv(phase="Released"), attachment(gone=True)], ids=["its object", "its attachment"])
def test_the_absence_of_a_volume_that_this_process_deleted_needs_no_proof_for_the_end_of(left: Object) -> None:
    observation = world(left, anchored=False, deleted_volumes=frozenset({"vol-1"}))

    assert not rests_on_absence(observation)
    assert len(plan(observation).changes) == 1
    assert not only(observation).held


def test_a_persistent_volume_deleted_before_its_claim_loses_its_volume_with_the_claim() -> None:
    assert len(plan(world(pv(gone=True), handed_over(), bound(claim(), has="5Gi")))) == 0
    assert isinstance(operation(world(pv(gone=True, phase="Released"), handed_over())), DeleteVolume)


def test_a_persistent_volume_deleted_before_binding_loses_its_volume() -> None:
    assert isinstance(operation(world(pv(gone=True, phase="Available"), handed_over())), DeleteVolume)


def test_a_released_persistent_volume_with_policy_retain_keeps_its_volume() -> None:
    assert len(plan(world(pv(phase="Released", policy="Retain", finalizer=False), handed_over()))) == 0


def test_a_volume_is_not_deleted_while_it_is_attached() -> None:
    state = AttachmentState.ATTACHED
    observation = world(pv(phase="Released"), handed_over(attachments=at_machine(state)), attachment(attached=True))

    assert [action.kind for action in plan(observation)] == [ActionKind.IGNORE]


def test_a_volume_that_no_volume_attachment_holds_is_detached_before_it_is_deleted() -> None:
    left = handed_over(attachments=at_machine(AttachmentState.ATTACHED))

    assert isinstance(operation(world(pv(phase="Released"), left)), DetachVolume)


@pytest.mark.parametrize("state", [None, AttachmentState.ATTACHED])
def test_a_volume_that_a_second_persistent_volume_uses_is_neither_detached_nor_deleted(
    state: AttachmentState | None,
) -> None:
    second = static_pv(nodeAffinity=view.node_affinity("zone-b"))
    second["metadata"]["labels"] = {view.ZONE: "zone-b", view.REGION: "local"}
    used = handed_over(attachments=at_machine(state) if state else ())

    assert "by-hand" in refusal(world(pv(phase="Released"), second, used))


def test_the_volume_of_another_cluster_is_never_deleted() -> None:
    foreign = volume(tags={**volume().tags, CLUSTER_TAG: "c-2"})

    assert "does not have this cluster's tags" in refusal(world(pv(phase="Released"), foreign))


def test_a_persistent_volume_made_by_hand_keeps_its_volume_whatever_its_policy() -> None:
    made = static_pv(persistentVolumeReclaimPolicy="Delete", nodeAffinity=view.node_affinity("zone-b"))
    made["metadata"]["labels"] = {view.ZONE: "zone-b", view.REGION: "local"}
    made["status"] = {"phase": "Released"}

    assert len(plan(world(made, volume(tags={})))) == 0


def test_a_persistent_volume_made_by_hand_gets_the_labels_and_affinity_of_its_volume() -> None:
    made = operation(world(static_pv(), volume(tags={})))

    assert isinstance(made, SetTopology)
    assert made.labels == {view.ZONE: "zone-b", view.REGION: "local"}
    assert made.node_affinity == view.node_affinity("zone-b")


def test_labels_and_affinity_set_by_hand_are_kept() -> None:
    by_hand = static_pv(nodeAffinity=view.node_affinity("zone-x"))
    by_hand["metadata"]["labels"] = {view.ZONE: "zone-x"}

    made = operation(world(by_hand, volume(tags={})))

    assert made.labels == {view.REGION: "local"}
    assert made.node_affinity is None


def test_a_persistent_volume_with_an_unknown_volume_handle_gets_a_warning() -> None:
    assert "vol-1 does not exist" in refusal(world(static_pv()))


def test_another_drivers_persistent_volume_is_left_alone() -> None:
    assert len(plan(world(static_pv(csi={"driver": "other", "volumeHandle": "vol-1"})))) == 0


# --------------------------------------------------------------------------------------------------- VolumeAttachments


def test_a_volume_is_attached_where_kubernetes_asks_for_it() -> None:
    made = operation(world(attachment(held=False, noted=False), pv(), handed_over()))

    assert isinstance(made, AttachVolume)
    assert (made.volume_id, made.provider_id) == ("vol-1", MACHINE)


def test_an_attachment_waits_while_the_cloud_is_working() -> None:
    attaching = handed_over(attachments=at_machine(AttachmentState.ATTACHING))

    assert isinstance(operation(world(attachment(), pv(), attaching)), Wait)


def test_an_attachment_is_marked_as_attached_once() -> None:
    there = handed_over(attachments=at_machine(AttachmentState.ATTACHED))

    assert isinstance(operation(world(attachment(), pv(), there)), SetAttached)
    assert len(plan(world(attachment(attached=True), pv(), there))) == 0


def test_a_volume_that_somebody_detached_is_attached_again() -> None:
    assert isinstance(operation(world(attachment(attached=True), pv(), handed_over())), AttachVolume)


def test_nothing_is_attached_to_a_node_that_is_not_initialised() -> None:
    made = operation(world(attachment(held=False, noted=False), pv(), handed_over(), node(zone=None)))

    assert isinstance(made, SetAttachError)
    assert "node worker" in made.message


def test_an_attachment_of_a_missing_volume_gets_one_attach_error() -> None:
    first = attachment(held=False, noted=False)
    told = operation(world(first, pv(phase="Bound"))).message
    first["status"]["attachError"] = {"message": told}

    assert only(world(first, pv(phase="Bound"))).kind is ActionKind.IGNORE


def test_a_deleted_volume_attachment_is_detached_though_its_node_and_persistent_volume_are_gone() -> None:
    there = handed_over(attachments=at_machine(AttachmentState.ATTACHED))

    found = plan(world(attachment(attached=True, gone=True), there, node("another")), {"attachment/csi-1"})

    (made,) = [action.operation for action in found]
    assert isinstance(made, DetachVolume)
    assert (made.volume_id, made.provider_id) == ("vol-1", MACHINE)


@pytest.mark.parametrize(
    "left",
    [(), (handed_over(),), (handed_over(attachments=(Attachment("cloud://another", AttachmentState.ATTACHED),)),)],
    ids=["the volume is gone", "the volume is attached to nothing", "the volume is attached to another machine"],
)
def test_a_deleted_volume_attachment_goes_when_nothing_is_attached(left: tuple[Volume, ...]) -> None:
    found = plan(world(attachment(gone=True), *left), {"attachment/csi-1"})

    assert [type(action.operation) for action in found] == [ReleaseAttachment]


@pytest.mark.parametrize(
    ("named", "why"),
    [({}, "nor a PersistentVolume names its volume"), ({VOLUME_ID: "vol-1"}, f"still attached to {MACHINE}")],
)
def test_a_deleted_volume_attachment_that_no_longer_says_what_is_attached_is_held(
    named: dict[str, str], why: str
) -> None:
    left = attachment(gone=True)
    left["metadata"]["annotations"] = named
    there = handed_over(attachments=at_machine(AttachmentState.ATTACHED))

    (action,) = plan(world(left, there, node("another")), {"attachment/csi-1"})

    assert action.held
    assert why in (action.reason or "")


def test_a_deleted_attachment_without_our_finalizer_is_left_alone() -> None:
    assert len(plan(world(attachment(gone=True, held=False), pv(), handed_over()))) == 0


# --------------------------------------------------------------------------------------------------------- orphans


DELETED = frozenset({"uid-data"})


def test_an_orphaned_volume_is_kept_until_it_is_confirmed_twice() -> None:
    assert only(world(volume(), deleted_claims=DELETED)).kind is ActionKind.IGNORE


def test_an_orphaned_volume_is_deleted_once_it_is_confirmed_twice() -> None:
    made = only(world(volume(), deleted_claims=DELETED, confirmed=frozenset({"vol-1"})))

    assert (made.kind, made.target, made.held) == (ActionKind.DELETE, "volume/vol-1", None)


def test_the_deletion_of_a_volume_whose_claim_vanished_without_a_deletion_is_held() -> None:
    made = only(world(volume(), confirmed=frozenset({"vol-1"})))

    assert made.kind is ActionKind.DELETE
    assert made.held
    assert "its deletion was not seen" in str(made.reason)


def test_a_volume_of_another_kubernetes_cluster_is_left_alone() -> None:
    theirs = volume(tags={**volume().tags, CLUSTER_UID_TAG: "uid-there"})

    action = only(world(theirs, deleted_claims=DELETED, confirmed=frozenset({"vol-1"}), binding=Binding("uid-here")))

    assert (action.kind, action.reason) == (
        ActionKind.IGNORE,
        "it belongs to the Kubernetes cluster with UID uid-there",
    )


def test_a_volume_is_made_with_the_uid_of_its_kubernetes_cluster() -> None:
    made = operation(world(claim(), binding=Binding("uid-here")))

    assert made.request.tags[CLUSTER_UID_TAG] == "uid-here"


def test_a_volume_without_the_uid_of_its_kubernetes_cluster_gets_it_while_its_claim_exists() -> None:
    tagged = operation(world(bound(claim(), has="5Gi"), pv(), handed_over(), binding=Binding("uid-here")))

    assert tagged.tags == {CLUSTER_UID_TAG: "uid-here"}


def test_a_retained_volume_moves_with_its_cluster_though_its_claim_is_gone() -> None:
    theirs = handed_over(tags={**handed_over().tags, CLUSTER_UID_TAG: "uid-old"})
    retained = pv(phase="Released", policy="Retain", finalizer=False)

    tagged = operation(world(retained, theirs, binding=Binding("uid-here", "uid-old")))

    assert tagged.tags == {CLUSTER_UID_TAG: "uid-here"}


def test_a_volume_whose_claim_is_gone_is_not_claimed_for_this_kubernetes_cluster() -> None:
    found = world(pv(phase="Released", policy="Retain", finalizer=False), handed_over(), binding=Binding("uid-here"))

    assert not any(isinstance(action.operation, TagVolume) for action in plan(found))


def test_a_volume_that_had_a_persistent_volume_stays_though_it_were_confirmed() -> None:
    action = only(world(handed_over(), confirmed=frozenset({"vol-1"})))

    assert action.kind is ActionKind.IGNORE
    assert "its data must be kept" in str(action.reason)


def test_a_volume_without_our_tags_is_ignored() -> None:
    assert len(plan(world(volume(tags={}), confirmed=frozenset({"vol-1"})))) == 0


def test_the_volume_of_a_claim_that_was_bound_to_another_one_is_an_orphan() -> None:
    observation = world(volume(), claim(volumeName="other"), confirmed=frozenset({"vol-1"}))

    assert isinstance(operation(observation), DiscardVolume)


# ------------------------------------------------------------------------------------------- what is read, and when


def test_no_volume_is_read_while_everything_is_up_to_date() -> None:
    there = handed_over(attachments=at_machine(AttachmentState.ATTACHED))
    observation = world(attachment(attached=True), pv(), there, bound(claim(), has="5Gi"))

    assert to_read(observation, None) == set()


@pytest.mark.parametrize(
    "at_work",
    [
        world(attachment(), pv(), handed_over()),
        world(attachment(gone=True), pv(), handed_over()),
        world(pv(phase="Released"), handed_over()),
        world(bound(claim(size="7Gi"), has="5Gi"), pv(), handed_over()),
        world(claim(), volume(state=VolumeState.CREATING)),
        world(static_pv()),
    ],
    ids=["attach", "detach", "delete", "resize", "create", "unknown volume"],
)
def test_volumes_with_operations_in_progress_are_read_before_planning(at_work: VolumeObservation) -> None:
    assert to_read(at_work, None) == {"vol-1"}


def test_a_volume_plan_covers_only_the_requested_objects() -> None:
    found = plan(world(claim("a"), claim("b")), {"claim/default/b"})

    assert [action.target for action in found] == ["claim/default/b"]


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [
        ("node/worker", {"claim/default/data", "attachment/csi-1"}),
        ("class/disks", {"claim/default/data"}),
        ("pv/pvc-uid-data", {"claim/default/data", "attachment/csi-1", "volume/vol-1"}),
        ("claim/default/data", {"volume/vol-1"}),
    ],
)
def test_a_change_of_a_storage_object_affects_its_dependents(changed: str, concerned: set[str]) -> None:
    observation = world(claim(), attachment(), volume())

    assert concerned <= related(observation, {changed})


# --------------------------------------------------------------------------------------------- before a cluster goes


@pytest.mark.parametrize(
    ("objects", "waits", "held"),
    [
        ((pv(),), True, []),
        ((), False, []),
        ((pv(), claim()), False, ["default/data"]),
        ((pv(), {**claim(), "metadata": {**claim()["metadata"], "deletionTimestamp": GONE}}), True, []),
        ((pv(policy="Retain"), claim()), False, []),
        ((static_pv(), pv(phase="Released")), False, []),
    ],
    ids=[
        "the claim is gone",
        "so is its PersistentVolume",
        "the claim is there",
        "the claim is going",
        "retained",
        "retained by a second PersistentVolume",
    ],
)
def test_a_cluster_waits_for_the_volumes_of_claims_that_are_gone(
    objects: tuple[Object, ...], waits: bool, held: list[str]
) -> None:
    pvs = [each for each in objects if "csi" in each["spec"]]
    claims = [each for each in objects if "csi" not in each["spec"]]

    assert leaving([handed_over()], pvs, claims) == ([handed_over()] if waits else [], held)


def test_a_cluster_waits_for_a_volume_that_never_had_a_persistent_volume() -> None:
    assert leaving([volume()], [], []) == ([volume()], [])


# ---------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [("1Gi", 1), ("1", 1), ("1G", 1), ("1025Mi", 2), ("1.5Gi", 2), ("2e9", 2), ("10737418240", 10), ("1Ti", 1024)],
)
def test_quantities_become_whole_gib(text: str, size: int) -> None:
    assert view.size_gib(text) == size


@pytest.mark.parametrize("text", ["1500m", "1u", "1n"])
def test_a_claim_for_less_than_a_byte_does_not_affect_other_claims(text: str) -> None:
    assert to_read(world(pv(), bound(claim(size=text), has="5Gi"), handed_over()), None) == set()


@pytest.mark.parametrize("text", ["", "Gi", "1.2.3Gi", "5GiB", "five"])
def test_an_invalid_quantity_is_rejected(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="quantity"):
        view.size_gib(text)
