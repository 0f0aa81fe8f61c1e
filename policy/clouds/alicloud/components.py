"""What components hold of the checklist on Alibaba Cloud."""

from __future__ import annotations

from functools import partial
from typing import Final

from policy.owners import component_of

_made = partial(component_of, "alicloud")

COMPONENTS: Final = {
    "11.1.4": _made(
        "network",
        "vSwitches of each zone for machines and pods",
        "each_zone_has_a_vswitch_for_machines_and_on_ack_one_for_pods",
    ),
    "11.1.7": _made(
        "access",
        "the cloud config names cluster and VPC",
        "the_cloud_config_names_the_cluster_and_its_vpc_in_which_it_calls_the_apis",
    ),
    "11.1.9": _made(
        "nodes",
        "kube-controller-manager leaves the CCM's controllers alone",
        "kube_controller_manager_leaves_the_ccms_controllers_alone",
    ),
    "11.1.10": _made(
        "nodes",
        "kubelets run with --cloud-provider=external",
        "nodes_of_a_self_managed_cluster_wait_for_the_ccm_and_say_which_machine_they_are",
    ),
    "11.3.1": _made("ack", "the CCM takes a role (RRSA) on ACK", "the_ccm_takes_its_role_by_a_token_for_ram_only"),
    "11.3.3": _made(
        "ram",
        "the CCM's role allows what its controllers call",
        "the_ccms_role_allows_exactly_what_its_controllers_call_and_changes_only_in_its_region",
    ),
    "11.3.4": _made(
        "security_groups",
        "machines of the control plane reach their network, the cloud's services and port 443",
        "control_plane_machines_reach_their_network_the_clouds_services_and_port_443",
    ),
    "11.3.5": _made(
        "adapter",
        "the CCM calls the APIs' addresses inside VPCs",
        "the_cloud_config_names_the_cluster_and_its_vpc_in_which_it_calls_the_apis",
    ),
    "11.3.6": _made(
        "audit",
        "a trail (ActionTrail), with auditDays",
        "a_trail_records_every_call_in_a_bucket_that_is_private_encrypted_and_versioned",
    ),
    "11.3.7": _made(
        "ack",
        "the control plane's logs are kept, with logDays",
        "the_logs_of_acks_control_plane_are_kept_as_long_as_the_stack_says",
    ),
}
"""By line."""
