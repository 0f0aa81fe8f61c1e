"""What components hold of the checklist on AWS."""

from __future__ import annotations

from functools import partial
from typing import Final

from policy.owners import component_of

_made = partial(component_of, "aws")

COMPONENTS: Final = {
    "11.1.4": _made(
        "network",
        "subnets of each zone, which load balancers find by their tags",
        "load_balancers_find_a_public_and_a_private_subnet_in_each_zone",
    ),
    "11.1.9": _made(
        "nodes",
        "kube-controller-manager leaves the CCM's controllers alone",
        "kube_controller_manager_leaves_the_ccms_controllers_alone",
    ),
    "11.1.10": _made(
        "nodes",
        "kubelets run with --cloud-provider=external",
        "nodes_of_a_self_managed_cluster_wait_for_the_ccm_to_initialise_them",
    ),
    "11.3.1": _made(
        "eks", "the CCM takes a role (IRSA) on EKS", "the_ccm_gets_its_credentials_by_a_token_for_aws_only"
    ),
    "11.3.3": _made(
        "iam",
        "the CCM's role allows what its controllers call",
        "the_ccms_role_allows_exactly_what_its_controllers_call",
    ),
    "11.3.4": _made(
        "security_groups",
        "machines of the control plane reach the cluster and port 443",
        "control_plane_machines_reach_the_cluster_and_port_443",
    ),
    "11.3.5": _made(
        "endpoints",
        "interface endpoints for the APIs that the CCM calls, with internalEndpoints",
        "the_apis_that_the_ccm_calls_have_addresses_in_each_subnet_of_the_nodes",
    ),
    "11.3.6": _made("audit", "a trail (CloudTrail), with auditDays", "a_trail_records_the_calls_in_every_region"),
    "11.3.7": _made(
        "eks",
        "the control plane's logs are kept, with logDays",
        "ekss_logs_go_to_a_group_that_the_program_made_before_the_cluster_to_keep_them_as_long_as_the_stack_says",
    ),
}
"""By line."""
