"""The Node that a machine registers and the status that it posts."""

from __future__ import annotations

from typing import Any

from local.machine.config import MachineConfig
from local.machine.node_object import (
    UNINITIALIZED_TAINT,
    csi_node,
    may_set_label,
    new_node,
    node_labels,
    node_status,
    registration_patch,
    status_patch,
)

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def config(**changes: Any) -> MachineConfig:
    fields: dict[str, Any] = {
        "id": "i-1",
        "node_name": "a",
        "address": "10.17.0.5",
        "type": "m1.small",
        "role": "worker",
    }
    return MachineConfig(**{**fields, **changes})


def condition(node: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(c for c in node["status"]["conditions"] if c["type"] == kind)


def test_a_new_node_carries_the_uninitialized_taint_and_no_provider_id() -> None:
    node = new_node(config(), NOW)

    assert node["spec"] == {"taints": [{"key": UNINITIALIZED_TAINT, "value": "true", "effect": "NoSchedule"}]}
    assert node["metadata"]["annotations"]["alpha.kubernetes.io/provided-node-ip"] == "10.17.0.5"
    assert [each["address"] for each in node["status"]["addresses"]] == ["10.17.0.5", "a"]
    assert condition(node, "Ready")["status"] == "True"


def test_a_control_plane_node_is_tainted_against_workloads_from_its_registration_on() -> None:
    taints = new_node(config(role="control-plane"), NOW)["spec"]["taints"]

    assert [t["key"] for t in taints] == [UNINITIALIZED_TAINT, "node-role.kubernetes.io/control-plane"]


def test_a_provider_id_is_registered_only_if_the_machine_has_one() -> None:
    assert new_node(config(provider_id="mycloud://r/z/i-1"), NOW)["spec"]["providerID"] == "mycloud://r/z/i-1"


def test_labels_that_node_restriction_denies_a_kubelet_are_left_out_and_named() -> None:
    labels, refused = node_labels(
        config(
            node_labels={
                "pool": "workers",
                "node.kubernetes.io/instance-type": "m1.small",
                "node-role.kubernetes.io/control-plane": "",
                "node-restriction.kubernetes.io/x": "1",
            }
        )
    )

    assert labels["pool"] == "workers"
    assert labels["node.kubernetes.io/instance-type"] == "m1.small"
    assert labels["kubernetes.io/hostname"] == "a"
    assert refused == ["node-restriction.kubernetes.io/x", "node-role.kubernetes.io/control-plane"]


def test_a_label_domain_with_the_suffix_of_kubernetes_own_is_allowed() -> None:
    assert may_set_label("notkubernetes.io/x")
    assert may_set_label("kubelet.kubernetes.io/x")
    assert not may_set_label("other.kubernetes.io/x")
    assert not may_set_label("x.node-restriction.kubernetes.io/x")


def test_a_boot_corrects_its_own_labels_and_keeps_foreign_fields() -> None:
    node = new_node(config(), NOW)
    node["metadata"]["labels"] |= {"topology.kubernetes.io/zone": "zone-a", "kubernetes.io/hostname": "old"}
    node["spec"] = {"providerID": "mycloud://r/z/i-1"}

    patch = registration_patch(config(node_labels={"pool": "b"}), node)

    assert patch == {"metadata": {"labels": {"pool": "b", "kubernetes.io/hostname": "a"}}}


def test_volumes_are_left_to_the_attach_detach_controller_on_nodes_of_an_earlier_release_too() -> None:
    key = "volumes.kubernetes.io/controller-managed-attach-detach"
    node = new_node(config(), NOW)
    assert node["metadata"]["annotations"].pop(key) == "true"

    patch = registration_patch(config(), node)

    assert patch is not None
    assert patch["metadata"]["annotations"][key] == "true"


def test_the_csi_driver_is_registered_with_the_machines_id_and_deleted_with_the_node() -> None:
    registered = csi_node(config(csi_driver="mycloud.io"), {"metadata": {"uid": "the-uid"}})

    assert registered["metadata"]["ownerReferences"][0]["uid"] == "the-uid"
    assert registered["spec"]["drivers"] == [
        {"name": "mycloud.io", "nodeID": "i-1", "topologyKeys": ["topology.kubernetes.io/zone"]}
    ]


def test_volumes_in_use_are_posted_when_the_node_differs() -> None:
    node = new_node(config(), NOW)

    in_use = status_patch(node, node_status(config(), node, LATER, ["kubernetes.io/csi/mycloud.io^vol-1"]))
    node["status"]["volumesInUse"] = in_use["volumesInUse"]

    assert in_use == {"volumesInUse": ["kubernetes.io/csi/mycloud.io^vol-1"]}
    assert status_patch(node, node_status(config(), node, LATER)) == {"volumesInUse": []}


def test_a_boot_with_nothing_new_patches_nothing() -> None:
    assert registration_patch(config(), new_node(config(), NOW)) is None


def test_addresses_that_the_cloud_set_are_posted_back_unchanged() -> None:
    node = new_node(config(), NOW)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "10.17.0.5"}]

    assert node_status(config(), node, LATER)["addresses"] == [{"type": "InternalIP", "address": "10.17.0.5"}]


def test_only_a_changed_condition_of_a_node_gets_a_new_transition_time() -> None:
    node = new_node(config(), NOW)
    condition(node, "Ready").update(status="Unknown", reason="NodeStatusUnknown")

    status = node_status(config(), node, LATER)

    assert condition({"status": status}, "Ready")["lastTransitionTime"] == LATER
    assert condition({"status": status}, "DiskPressure")["lastTransitionTime"] == NOW
    assert list(status_patch(node, status)) == ["conditions"]


def test_a_heartbeat_alone_is_not_posted() -> None:
    node = new_node(config(), NOW)
    node["status"]["nodeInfo"]["swap"] = {"capacity": 0}  # a field that only the API server knows
    node["status"]["conditions"].append({"type": "NetworkUnavailable", "status": "False"})

    assert status_patch(node, node_status(config(), node, LATER)) == {}
