"""What components hold of the checklist on OpenStack."""

from __future__ import annotations

from functools import partial
from typing import Final

from policy.owners import component_of

_made = partial(component_of, "openstack")

COMPONENTS: Final = {
    "11.1.7": _made(
        "access",
        "the cloud config names cluster, router and external network",
        "the_cloud_config_is_made_of_what_the_program_made",
    ),
    "11.1.9": _made(
        "user_data",
        "kube-controller-manager leaves the CCM's controllers alone",
        "kube_controller_manager_leaves_the_ccms_controllers_alone",
    ),
    "11.1.10": _made(
        "user_data",
        "kubelets run with --cloud-provider=external",
        "nodes_wait_for_the_ccm_and_say_which_server_they_are",
    ),
    "11.3.2": _made(
        "credential",
        "the CCM's credential expires on the stack's day",
        "another_day_of_expiry_makes_another_credential_though_the_cluster_is_protected",
    ),
    "11.3.3": _made(
        "credential",
        "the CCM's credential allows what its controllers call",
        "the_ccms_credential_allows_exactly_what_its_controllers_call",
    ),
    "11.3.4": _made(
        "security_groups",
        "machines of the control plane reach the cluster, port 443, DNS and NTP",
        "control_plane_machines_reach_the_cluster_port_443_dns_and_the_time",
    ),
}
"""By line."""
