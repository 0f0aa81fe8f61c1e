"""Defects planted in clouds, and for each the test of the suite that must fail because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from cloud_controller.cloud import (
    AccessDenied,
    CloudError,
    Conflict,
    InvalidConfiguration,
    NotFound,
    QuotaExceeded,
    Throttled,
    Unavailable,
)
from cloud_controller.load_balancers.model import CLUSTER_UID_TAG, SERVICE_UID_TAG
from cloud_controller.load_balancers.operations import PutListener, RemoveMembers
from tests.contract import (
    defects,
    load_balancer_defects,
    machine_defects,
    test_answers,
    test_changes,
    test_creation,
    test_fencing,
    test_gone,
    test_holding,
    test_interruptions,
    test_machines,
    test_ownership,
    test_plans,
    test_routes,
    test_services,
    test_volumes,
)
from tests.contract.harness import Harness

FoundBy = Callable[[Harness], None]


@dataclass(frozen=True)
class Mutant:
    """A defect of a cloud. `plant` changes what `Harness.new_cloud` has returned or, `in_table`, the error codes."""

    of: str
    defect: str
    plant: defects.Plant
    found_by: FoundBy
    in_table: bool = False

    def __str__(self) -> str:
        return f"{self.of}: {self.defect}"

    @contextmanager
    def planted(self, harness: Any) -> Iterator[Any]:
        """The harness of a cloud that has the defect."""
        if not self.in_table:
            yield _Planted(harness, self.plant)
            return
        with patch.dict(harness.error_table.kinds):  # Every client has the same table.
            self.plant(harness.error_table)
            yield harness


class _Planted:
    """The harness; the clouds that it makes have the defect."""

    def __init__(self, harness: Harness, plant: defects.Plant) -> None:
        self._harness = harness
        self._plant = plant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def new_cloud(self) -> Any:
        """The cloud with its defect."""
        cloud = self._harness.new_cloud()
        self._plant(cloud)
        return cloud


TINY, MYCLOUD, AWS, CLASSIC = "tinycloud", "mycloud", "aws", "aws_classic"
ALICLOUD, CLB, NLB = "alicloud", "alicloud_clb", "alicloud_nlb"
OPENSTACK, OCTAVIA = "openstack", "openstack_octavia"
BALANCERS = f"{TINY} {MYCLOUD} {AWS} {CLASSIC} {CLB} {NLB} {OCTAVIA}"
MACHINES = f"{MYCLOUD} {AWS} {ALICLOUD} {OPENSTACK}"

_LOAD_BALANCERS: Iterable[tuple[str, str, defects.Plant, FoundBy]] = (
    # Creations
    (f"{TINY} {AWS} {CLASSIC}", "the client token is ignored", load_balancer_defects.tokens_ignored,
     test_creation.test_the_same_token_never_makes_a_second_load_balancer),
    (MYCLOUD, "the client token is not sent", defects.leaves_out("POST load_balancers", "client_token"),
     test_creation.test_the_same_token_never_makes_a_second_load_balancer),
    (CLB, "the client token is not sent", defects.leaves_out("slb CreateLoadBalancer", "ClientToken"),
     test_creation.test_the_same_token_never_makes_a_second_load_balancer),
    (NLB, "the client token is not sent", defects.leaves_out("nlb CreateLoadBalancer", "ClientToken"),
     test_creation.test_the_same_token_never_makes_a_second_load_balancer),
    (NLB, "a server group is made again", defects.leaves_out("nlb CreateServerGroup", "ClientToken"),
     test_creation.test_the_same_token_never_makes_a_second_load_balancer),
    (OCTAVIA, "the client token is not in a tag",
     defects.leaves_out("POST load-balancer lbaas/loadbalancers", "cloud-controller/token"),
     test_creation.test_the_same_token_never_makes_a_second_load_balancer),
    (f"{TINY} {MYCLOUD}", "the client token is of the settings, too", load_balancer_defects.tokens_of_settings,
     test_creation.test_a_token_in_use_with_other_settings_never_makes_a_second_load_balancer),
    (f"{TINY} {MYCLOUD}", "all creations have one token", load_balancer_defects.one_token_for_all,
     test_creation.test_other_tokens_make_other_load_balancers),
    (f"{TINY} {MYCLOUD}", "a list decides whether a load balancer is created",
     load_balancer_defects.creations_looked_for_in_a_list,
     test_answers.test_a_creation_that_lists_do_not_show_yet_is_not_repeated_with_another_load_balancer),
    (f"{AWS} {CLASSIC}", "remains seem to be a load balancer", load_balancer_defects.remains_taken_for_whole,
     test_creation.test_a_partial_creation_is_taken_over_by_the_next_process),
    (f"{TINY} {MYCLOUD}", "the address is not read", load_balancer_defects.observes(ingress=()),
     test_creation.test_a_created_load_balancer_is_the_desired_one_to_a_new_process),
    (TINY, "silence has no type", defects.untypes("client._attempt", Unavailable),
     test_interruptions.test_whichever_answer_is_lost_the_outcome_is_the_same),
    (f"{MYCLOUD} {NLB}", "silence has no type", defects.untypes("_client._http.send", Unavailable),
     test_interruptions.test_whichever_answer_is_lost_the_outcome_is_the_same),
    (BALANCERS, "the quota's error has no type", defects.takes(QuotaExceeded, CloudError),
     test_answers.test_a_creation_beyond_the_quota_is_reported_as_such_and_leaves_nothing_behind),
    (BALANCERS, "the fence is not asked", defects.fence_not_passed_on,
     test_fencing.test_no_creation_reaches_the_cloud_when_the_fence_refuses_it),
    (TINY, "the fence is not asked before changes", defects.unfenced_request("put_load_balancer"),
     test_fencing.test_no_operation_reaches_the_cloud_when_the_fence_refuses_it),
    (MYCLOUD, "the fence is not asked before a POST of members", defects.unfenced_request("POST load_balancers/"),
     test_fencing.test_no_operation_reaches_the_cloud_when_the_fence_refuses_it),
    (AWS, "the fence is not asked before targets change", defects.unfenced_request("elbv2 RegisterTargets"),
     test_fencing.test_no_operation_reaches_the_cloud_when_the_fence_refuses_it),
    (f"{MYCLOUD} {AWS} {CLB} {NLB}", "the fence is asked once a change",
     load_balancer_defects.fence_asked_once_a_change,
     test_fencing.test_a_fence_that_closes_in_the_middle_of_a_change_lets_nothing_more_through),
    (f"{MYCLOUD} {CLB}", "the fence is asked before connecting", defects.fence_asked_before_connecting,
     test_fencing.test_the_fence_is_asked_once_the_connection_to_the_cloud_stands),
    (AWS, "the fence is asked before connecting", defects.passes_on("_api._fenced"),
     test_fencing.test_the_fence_is_asked_once_the_connection_to_the_cloud_stands),
    (f"{TINY} {AWS}", "reads ask the fence", defects.fenced_request(""),
     test_fencing.test_reads_do_not_ask_the_fence),
    (MYCLOUD, "a check of rights asks the fence", defects.fenced_request("POST access:check"),
     test_fencing.test_reads_do_not_ask_the_fence),
    (TINY, "the fence is asked once an operation", load_balancer_defects.fence_asked_at_the_first_attempt_only,
     test_fencing.test_each_attempt_at_a_write_asks_the_fence_again),
    # Ownership
    (TINY, "the mark is not written", defects.requests("create_load_balancer", load_balancer_defects.mark_not_written),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (AWS, "security groups have no tags", defects.leaves_out("ec2 CreateSecurityGroup", "TagSpecifications"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (AWS, "target groups have no tags", defects.leaves_out("elbv2 CreateTargetGroup", "Tags"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (CLASSIC, "load balancers lack a Service's tag", defects.leaves_out("elb CreateLoadBalancer", SERVICE_UID_TAG),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (CLB, "server groups have no tags", defects.leaves_out("slb CreateVServerGroup", "Tag"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (CLB, "listeners are tagged later", defects.leaves_out("slb CreateLoadBalancerTCPListener", "Tag"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (NLB, "server groups have no tags", defects.leaves_out("nlb CreateServerGroup", "Tag"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (NLB, "listeners have no tags", defects.leaves_out("nlb CreateListener", "Tag"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (OCTAVIA, "floating IPs do not say whose they are", defects.leaves_out("POST network floatingips", "description"),
     test_ownership.test_every_part_of_a_load_balancer_is_created_with_the_owners_mark),
    (TINY, "a deletion goes by the name", load_balancer_defects.deletion_by_name,
     test_ownership.test_foreign_resources_are_the_same_after_a_load_balancers_whole_life),
    (f"{MYCLOUD} {AWS} {CLASSIC} {CLB} {NLB} {OCTAVIA}", "IDs of clusters are compared by their beginning",
     defects.compares_beginnings,
     test_ownership.test_foreign_load_balancers_with_similar_names_and_tags_are_not_read_as_the_clusters_own),
    # Reads
    (f"{TINY} {MYCLOUD}", "the load balancers of all Services are read", load_balancer_defects.all_services_read,
     test_answers.test_a_read_returns_the_services_and_ids_that_it_is_asked_for),
    (f"{TINY} {MYCLOUD}", "what is deleted is remembered", load_balancer_defects.what_services_had_remembered,
     test_answers.test_a_load_balancer_that_is_gone_is_absent),
    (TINY, "only the first page is read",
     defects.requests("list_load_balancers", lambda send, content: (send(content)[0], "")),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    (MYCLOUD, "only the first page is read", defects.reads_one_page("GET load_balancers"),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    (AWS, "only the first page is read", defects.reads_one_page("elbv2 DescribeLoadBalancers"),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    (CLASSIC, "only the first page is read", defects.reads_one_page("elb DescribeLoadBalancers"),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    (CLB, "only the first page is read", defects.reads_one_page("slb DescribeLoadBalancers"),
     test_answers.test_what_is_left_of_creations_is_read_over_all_pages),
    (CLB, "only the first page of listeners is read", defects.reads_one_page("slb DescribeLoadBalancerListeners"),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    (NLB, "only the first page is read", defects.reads_one_page("nlb ListLoadBalancers"),
     test_answers.test_what_is_left_of_creations_is_read_over_all_pages),
    (NLB, "only the first page of server groups is read", defects.reads_one_page("nlb ListServerGroups"),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    # What the lists of parts show is asked for by ID.
    (OCTAVIA, "only the first page is read", defects.reads_one_page("GET load-balancer lbaas/"),
     test_answers.test_all_load_balancers_are_read_over_all_pages),
    (BALANCERS, "throttling is taken for gone", defects.takes(Throttled, NotFound),
     test_answers.test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone),
    (TINY, "the time to wait is dropped", defects.takes(Throttled, lambda text: Throttled(text, 0.0)),
     test_answers.test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone),
    (BALANCERS, "silence is taken for gone", defects.takes(Unavailable, NotFound),
     test_answers.test_a_read_without_an_answer_raises_and_makes_nothing_look_gone),
    (TINY, "a list without an answer is empty", defects.swallows(Unavailable, "list_load_balancers", ([], "")),
     test_answers.test_a_read_without_an_answer_raises_and_makes_nothing_look_gone),
    (MYCLOUD, "a refused list is empty", defects.swallows(AccessDenied, "GET load_balancers", {"items": []}),
     test_answers.test_a_read_that_breaks_off_at_any_call_raises_and_returns_no_part),
    (AWS, "a refused read of targets finds none",
     defects.swallows(AccessDenied, "elbv2 DescribeTargetHealth", {"TargetHealthDescriptions": []}),
     test_answers.test_a_read_that_breaks_off_at_any_call_raises_and_returns_no_part),
    (CLASSIC, "a refused read of tags finds none",
     defects.swallows(AccessDenied, "elb DescribeTags", {"TagDescriptions": []}),
     test_answers.test_a_read_that_breaks_off_at_any_call_raises_and_returns_no_part),
    (CLB, "a refused list of listeners is empty",
     defects.swallows(AccessDenied, "slb DescribeLoadBalancerListeners", {"Listeners": []}),
     test_answers.test_a_read_that_breaks_off_at_any_call_raises_and_returns_no_part),
    (NLB, "a refused list of servers is empty",
     defects.swallows(AccessDenied, "nlb ListServerGroupServers", {"Servers": []}),
     test_answers.test_a_read_that_breaks_off_at_any_call_raises_and_returns_no_part),
    (TINY, "what a list lacks is gone", defects.finds_none("get_load_balancer"),
     test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
    (MYCLOUD, "what a list lacks is gone", defects.finds_none("GET load_balancers/"),
     test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
    (f"{AWS} {CLASSIC}", "what a list lacks is gone", defects.answers("load_balancers._unlisted", []),
     test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
    (CLB, "what a list lacks is gone", defects.finds_none("slb DescribeLoadBalancerAttribute"),
     test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
    (NLB, "what a list lacks is gone", defects.finds_none("nlb GetLoadBalancerAttribute"),
     test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
    (AWS, "parts without their load balancer are not looked for", defects.answers("load_balancers._left_behind", []),
     test_creation.test_a_partial_creation_that_nobody_wants_any_more_leaves_nothing),
    (TINY, "building asks the cloud", load_balancer_defects.building_asks, test_plans.test_a_plan_makes_no_call),
    (TINY, "the observer does not see failures", defects.failed_attempts_unobserved,
     test_answers.test_the_observer_gets_every_attempt_with_its_operation_and_error),
    # Holding
    (f"{TINY} {MYCLOUD} {AWS}", "a whole load balancer seems to be remains",
     load_balancer_defects.takes_whole_for_remains,
     test_holding.test_the_load_balancer_of_a_service_that_vanished_stays_whole_until_its_deletion_is_confirmed),
    (AWS, "remains do not say whose they are", defects.leaves_out("elbv2 CreateTargetGroup", CLUSTER_UID_TAG),
     test_holding.test_a_confirmed_deletion_that_breaks_off_is_finished_without_another_confirmation),
    (CLASSIC, "remains do not say whose they are", defects.leaves_out("ec2 CreateSecurityGroup", CLUSTER_UID_TAG),
     test_holding.test_a_confirmed_deletion_that_breaks_off_is_finished_without_another_confirmation),
    (f"{TINY} {MYCLOUD} {CLB}", "no machine is listed", machine_defects.no_machines_listed,
     test_holding.test_with_a_machine_of_the_cluster_a_lost_load_balancer_is_made_again),
    (MYCLOUD, "machines of others are listed", machine_defects.foreign_machines_listed,
     test_holding.test_without_a_machine_of_the_cluster_nothing_is_made_and_no_finalizer_released_until_it_is_confirmed),
    (f"{AWS} {CLASSIC}", "machines of others are listed", defects.leaves_out("ec2 DescribeInstances", "Filters"),
     test_holding.test_without_a_machine_of_the_cluster_nothing_is_made_and_no_finalizer_released_until_it_is_confirmed),
    (f"{CLB} {NLB}", "machines of others are listed", defects.leaves_out("ecs DescribeInstances", "Tag"),
     test_holding.test_without_a_machine_of_the_cluster_nothing_is_made_and_no_finalizer_released_until_it_is_confirmed),
    (MYCLOUD, "machines of others are listed", machine_defects.foreign_machines_listed,
     test_holding.test_nor_does_a_process_that_has_changed_a_service_believe_that_its_load_balancer_is_gone),
    # Services
    (f"{MYCLOUD} {AWS} {OCTAVIA}", "no load balancer is ever settled", load_balancer_defects.never_settled,
     test_services.test_a_service_at_rest_costs_no_call_and_its_next_process_changes_nothing),
    (f"{TINY} {CLASSIC} {CLB} {NLB}", "a Service's name is not read", load_balancer_defects.service_tag_not_read,
     test_services.test_a_service_at_rest_costs_no_call_and_its_next_process_changes_nothing),
    (BALANCERS, "members are not removed", load_balancer_defects.takes_for_done(RemoveMembers),
     test_services.test_a_node_that_comes_or_goes_changes_members_only),
    (BALANCERS, "only a creation makes listeners", load_balancer_defects.takes_for_done(PutListener),
     test_services.test_what_somebody_deleted_of_a_load_balancer_is_made_again_at_the_next_look),
    (BALANCERS, "throttling has no type", defects.takes(Throttled, CloudError),
     test_services.test_while_the_cloud_throttles_a_service_has_not_failed_and_it_is_served_afterwards),
    # Changes
    (BALANCERS, "errors are swallowed", load_balancer_defects.errors_swallowed,
     test_changes.test_a_change_without_an_answer_is_reported_as_unavailable),
    (f"{MYCLOUD} {AWS} {CLB} {NLB}", "a member whose machine is gone fails its batch",
     load_balancer_defects.one_member_fails_all,
     test_changes.test_a_member_whose_machine_is_gone_is_left_out_and_all_others_are_in),
    (TINY, "errors are raised", load_balancer_defects.errors_raised,
     test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
    (TINY, "results are out of order", load_balancer_defects.results_reversed,
     test_changes.test_a_change_has_one_result_for_each_operation_in_their_order),
    (f"{TINY} {NLB} {OCTAVIA}", "what depends on a failure is done",
     load_balancer_defects.continues_after_a_failure,
     test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
    (f"{TINY} {NLB} {OCTAVIA}", "members do not change after a failure",
     load_balancer_defects.stops_at_the_first_failure,
     test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
    (f"{TINY} {MYCLOUD} {NLB}", "members change while the cloud throttles",
     load_balancer_defects.members_changed_while_throttled,
     test_changes.test_while_the_cloud_throttles_a_change_reports_it_and_attempts_nothing_more),
    (MYCLOUD, "what was not attempted is reported as done", load_balancer_defects.reports_what_it_did_not_attempt,
     test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
    (TINY, "members are not added", load_balancer_defects.members_added_once_only,
     test_changes.test_after_a_change_the_load_balancer_is_as_the_operations_say),
    (f"{MYCLOUD} {OCTAVIA}", "what the cloud is still doing is called settled",
     load_balancer_defects.settled_too_early,
     test_changes.test_what_is_called_settled_is_complete_before_any_time_passes),
    (TINY, "what failed is called settled", load_balancer_defects.settled_too_early,
     test_changes.test_what_failed_or_waits_is_not_called_settled),
    # Deletions
    (MYCLOUD, "what is gone cannot be deleted", defects.takes(NotFound, CloudError, "DELETE load_balancers"),
     test_changes.test_a_repeated_change_succeeds_and_changes_nothing),
    (TINY, "what is gone cannot be deleted", load_balancer_defects.missing_is_an_error_for_deletions,
     test_changes.test_a_repeated_deletion_succeeds),
    (TINY, "a pool stays", load_balancer_defects.a_part_stays,
     test_interruptions.test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes),
    (AWS, "target groups stay", defects.never_sends("elbv2 DeleteTargetGroup"),
     test_ownership.test_the_load_balancer_of_another_service_stays_when_one_is_deleted),
    (f"{AWS} {CLASSIC}", "security groups stay", defects.never_sends("ec2 DeleteSecurityGroup"),
     test_ownership.test_the_load_balancer_of_another_service_stays_when_one_is_deleted),
    (CLASSIC, "a listener stays", defects.never_sends("elb DeleteLoadBalancerListeners"),
     test_changes.test_after_a_change_the_load_balancer_is_as_the_operations_say),
    (CLB, "a server group stays", defects.never_sends("slb DeleteVServerGroup"),
     test_changes.test_after_a_change_the_load_balancer_is_as_the_operations_say),
    (NLB, "server groups stay", defects.never_sends("nlb DeleteServerGroup"),
     test_ownership.test_the_load_balancer_of_another_service_stays_when_one_is_deleted),
    (f"{MYCLOUD} {AWS} {CLB} {NLB} {OCTAVIA}", "other clusters' load balancers are not told",
     defects.answers("cluster_ids", ()),
     test_ownership.test_the_clusters_of_load_balancers_are_told_whoever_has_made_them),
    (OCTAVIA, "floating IPs stay", defects.never_sends("DELETE network floatingips"),
     test_ownership.test_the_deletion_of_a_load_balancer_that_is_gone_succeeds),
)  # fmt: skip

_OTHERS: Iterable[tuple[str, str, defects.Plant, FoundBy]] = (
    # Clusters that are gone
    (MACHINES, "what the cloud does not run is gone", defects.answers("has_cluster", False),
     test_gone.test_a_cluster_that_the_cloud_does_not_run_or_still_has_is_not_gone),
    (f"{MYCLOUD} {AWS}", "silence proves a cluster gone", defects.guesses("has_cluster", Unavailable, False),
     test_gone.test_a_cluster_is_not_gone_while_the_cloud_does_not_answer),
    (f"{MYCLOUD} {AWS}", "a refusal proves a cluster gone", defects.guesses("has_cluster", AccessDenied, False),
     test_gone.test_a_cluster_is_not_gone_while_the_cloud_does_not_answer),
    (MACHINES, "machines that the cloud does not show are none", defects.guesses("instances.list", AccessDenied, ()),
     test_gone.test_machines_that_cannot_be_listed_are_not_none),
    (f"{AWS} {ALICLOUD}", "machines are not looked at", defects.answers("instances.list", ()),
     test_gone.test_a_machine_that_is_not_terminated_shows_that_the_cluster_lives),
    (MYCLOUD, "only the first page of clusters is told", defects.reads_one_page("GET machines"),
     test_gone.test_the_clusters_of_all_machines_are_told_over_all_pages),
    (f"{AWS} {ALICLOUD}", "other clusters' machines are not told",
     defects.answers("cluster_ids", ()), test_gone.test_the_clusters_of_all_machines_are_told_over_all_pages),
    # Machines
    (MYCLOUD, "machines have no zone", machine_defects.machines_without_zone,
     test_machines.test_a_machine_is_found_by_provider_id_and_by_name),
    (MYCLOUD, "a terminated machine is taken for stopped", defects.reads_as("GET machines", "terminated", "stopped"),
     test_machines.test_a_terminated_machine_is_gone),
    (AWS, "a terminated machine is taken for stopped",
     defects.reads_as("ec2 DescribeInstances", "terminated", "stopped"),
     test_machines.test_a_terminated_machine_is_gone),
    (MYCLOUD, "a machine of others that has a node's name is found", machine_defects.foreign_machines_listed,
     test_machines.test_a_name_that_no_machine_of_the_cluster_has_is_gone),
    (ALICLOUD, "a machine of others that has a node's name is found",
     defects.leaves_out("ecs DescribeInstances", "Tag"),
     test_machines.test_a_name_that_no_machine_of_the_cluster_has_is_gone),
    (MACHINES, "throttling proves a machine gone", machine_defects.machines_gone_after(Throttled),
     test_machines.test_no_machine_is_gone_while_the_cloud_throttles),
    (f"{MYCLOUD} {AWS} {ALICLOUD}", "silence proves a machine gone", machine_defects.machines_gone_after(Unavailable),
     test_machines.test_no_machine_is_gone_while_the_cloud_does_not_answer),
    (MYCLOUD, "a throttled confirmation proves a machine gone", defects.takes(Throttled, NotFound, "GET machines/"),
     test_machines.test_no_machine_is_gone_when_any_of_the_calls_is_refused),
    (ALICLOUD, "a throttled confirmation proves a machine gone", defects.guesses("instances._is_gone", Throttled, True),
     test_machines.test_no_machine_is_gone_when_any_of_the_calls_is_refused),
    (f"{MYCLOUD} {AWS}", "machines are listed before they are described",
     machine_defects.machines_listed_before_they_are_described,
     test_machines.test_no_node_costs_no_call),
    (f"{ALICLOUD} {OPENSTACK}", "names are compared exactly", machine_defects.names_compared_exactly,
     test_machines.test_a_machine_is_found_by_the_name_that_its_kubelet_registers),
    (MACHINES, "two machines of a name are none", machine_defects.machines_gone_after(Conflict),
     test_machines.test_a_name_of_two_machines_is_an_error_that_names_both),
    (MACHINES, "another cloud's machine is gone", machine_defects.machines_gone_after(InvalidConfiguration),
     test_machines.test_the_provider_id_of_another_cloud_is_an_error_that_names_the_node),
    (MACHINES, "machines are described one by one", machine_defects.one_call_for_each_machine,
     test_machines.test_many_machines_cost_few_calls),
    (MYCLOUD, "a list proves a machine gone", defects.finds_none("GET machines/"),
     test_machines.test_a_machine_that_lists_do_not_show_yet_is_not_gone),
    (AWS, "a list proves a machine gone", defects.answers("instances._confirmed", ()),
     test_machines.test_a_machine_that_lists_do_not_show_yet_is_not_gone),
    (ALICLOUD, "a list proves a machine gone", defects.answers("instances._is_gone", True),
     test_machines.test_a_machine_that_lists_do_not_show_yet_is_not_gone),
    (OPENSTACK, "a list proves a machine gone", defects.answers("instances._by_id", None),
     test_machines.test_a_machine_that_lists_do_not_show_yet_is_not_gone),
    (MYCLOUD, "only the first page of machines is read", defects.reads_one_page("GET machines"),
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    (AWS, "only the first page of machines is read", defects.reads_one_page("ec2 DescribeInstances"),
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    (ALICLOUD, "only the first page of machines is read", defects.reads_one_page("ecs DescribeInstances"),
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    (OPENSTACK, "only the first page of machines is read", defects.reads_one_page("GET compute servers"),
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    (MYCLOUD, "machines of others are listed", machine_defects.foreign_machines_listed,
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    (AWS, "machines of others are listed", defects.leaves_out("ec2 DescribeInstances", "Filters"),
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    (ALICLOUD, "machines of others are listed", defects.leaves_out("ecs DescribeInstances", "Tag"),
     test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
    # Routes
    (AWS, "a route that exists is an error", defects.passes_on("routes._but_there_already"),
     test_routes.test_a_route_that_exists_as_wanted_is_created_again_with_success),
    (MYCLOUD, "a route that is missing is an error", defects.reads_as("POST route_tables", "NotFound", "Conflict"),
     test_routes.test_a_route_that_is_missing_is_deleted_with_success),
    (AWS, "a route that is missing is an error", defects.takes(NotFound, CloudError, "ec2 DeleteRoute"),
     test_routes.test_a_route_that_is_missing_is_deleted_with_success),
    (MYCLOUD, "creations of routes are not repeated", defects.leaves_out("POST route_tables", "idempotent"),
     test_routes.test_whichever_answer_to_a_creation_is_lost_the_routes_are_there),
    (AWS, "a repeated creation of a route is an error", defects.passes_on("routes._but_there_already"),
     test_routes.test_whichever_answer_to_a_creation_is_lost_the_routes_are_there),
    (MYCLOUD, "deletions of routes are not repeated", defects.leaves_out("POST route_tables", "idempotent"),
     test_routes.test_whichever_answer_to_a_deletion_is_lost_the_routes_are_gone),
    (ALICLOUD, "a repeated deletion of a route is an error", defects.passes_on("routes._still", 1),
     test_routes.test_whichever_answer_to_a_deletion_is_lost_the_routes_are_gone),
    (f"{MYCLOUD} {AWS} {ALICLOUD}", "failures of routes are raised", machine_defects.route_failures_raised,
     test_routes.test_while_the_cloud_throttles_each_route_fails_and_none_is_raised),
    (f"{MYCLOUD} {AWS} {ALICLOUD}", "routes without permission seem written", machine_defects.refused_routes_dropped,
     test_routes.test_routes_without_permission_fail_and_are_not_taken_for_written),
    (f"{MYCLOUD} {AWS} {ALICLOUD}", "a throttled table seems empty", defects.guesses("routes.list", Throttled, []),
     test_routes.test_a_throttled_table_is_not_read_as_empty),
    (MACHINES, "failures of routes are dropped", machine_defects.route_failures_dropped,
     test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
    (MACHINES, "one refused route refuses all", machine_defects.one_refused_route_refuses_all,
     test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
    (MACHINES, "the error of the routes' quota has no type", machine_defects.route_failures_untyped,
     test_routes.test_routes_beyond_the_quota_fail_one_by_one),
    (MACHINES, "unowned routes are deleted", machine_defects.unowned_routes_deleted,
     test_routes.test_foreign_routes_are_listed_and_stay_as_they_are),
    (MACHINES, "every route is owned", machine_defects.all_routes_owned,
     test_routes.test_foreign_routes_are_listed_and_stay_as_they_are),
    (MACHINES, "the fence is not asked before a route", defects.fence_not_passed_on,
     test_routes.test_no_route_reaches_the_cloud_when_the_fence_refuses_it),
    (MACHINES, "the machine of a route seems gone", machine_defects.machines_of_routes_gone,
     test_routes.test_the_route_of_a_machine_that_exists_is_held_while_its_node_is_missing),
    (MYCLOUD, "only the first page of routes is read", defects.reads_one_page("GET route_tables"),
     test_routes.test_created_routes_are_listed_and_deleted_ones_are_not),
    (ALICLOUD, "only the first page of routes is read", defects.reads_one_page("vpc DescribeRouteEntryList"),
     test_routes.test_created_routes_are_listed_and_deleted_ones_are_not),
    (ALICLOUD, "entries that failed are overlooked", defects.overlooks("vpc CreateRouteEntries", "FailedRouteEntries"),
     test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
    (AWS, "machines drop what is not theirs", defects.never_sends("ec2 ModifyInstanceAttribute"),
     test_routes.test_the_machine_of_a_created_route_passes_its_packets_on),
    (ALICLOUD, "machines drop what is not theirs", defects.never_sends("ecs ModifyNetworkInterfaceAttribute"),
     test_routes.test_the_machine_of_a_created_route_passes_its_packets_on),
    (OPENSTACK, "machines drop what is not theirs", defects.never_sends("PUT network ports"),
     test_routes.test_the_machine_of_a_created_route_passes_its_packets_on),
    (ALICLOUD, "a machine is opened after its routes", machine_defects.machines_opened_after_their_routes,
     test_routes.test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes),
    (OPENSTACK, "a machine stays open to what is deleted", machine_defects.machines_not_closed,
     test_routes.test_a_deleted_route_leaves_nothing_beside_one_that_stays),
    # Volumes
    (MYCLOUD, "the creation of a volume is not repeated", defects.leaves_out("POST volumes", "idempotent"),
     test_volumes.test_a_volume_whose_answer_is_lost_is_created_once),
    (MYCLOUD, "silence proves a volume gone", defects.guesses("volumes.list", Unavailable, []),
     test_volumes.test_no_volume_is_gone_while_the_cloud_throttles_or_does_not_answer),
    (MYCLOUD, "a conflict does not name the machine", defects.takes(Conflict, lambda _: Conflict("it is attached")),
     test_volumes.test_a_volume_is_attached_to_one_machine_at_a_time_and_each_write_may_be_repeated),
    (MYCLOUD, "a volume is not resized again", machine_defects.volumes_not_resized_again,
     test_volumes.test_tags_and_size_are_set_and_each_write_may_be_repeated),
    (MYCLOUD, "a volume that is gone cannot be deleted", defects.takes(NotFound, CloudError, "DELETE volumes"),
     test_volumes.test_a_volume_that_is_gone_is_deleted_and_detached_but_not_attached),
    (MYCLOUD, "the provider ID of another cloud is taken", machine_defects.provider_ids_of_others_accepted,
     test_volumes.test_another_clouds_machine_is_an_error),
    (MYCLOUD, "a list proves a volume gone", defects.finds_none("GET volumes/"),
     test_volumes.test_a_volume_that_lists_do_not_show_yet_is_not_gone),
    (MYCLOUD, "a volume's token is ignored", defects.leaves_out("POST volumes", "client_token"),
     test_volumes.test_a_volume_is_created_once_a_token),
    (MYCLOUD, "only the first page of volumes is read", defects.reads_one_page("GET volumes"),
     test_volumes.test_only_the_clusters_volumes_are_listed_over_all_pages),
    (MYCLOUD, "the error of the volumes' quota has no type", defects.takes(QuotaExceeded, CloudError),
     test_volumes.test_a_volume_beyond_the_quota_is_refused_as_such),
    (MYCLOUD, "the fence is not asked before a volume", defects.fence_not_passed_on,
     test_volumes.test_no_change_of_a_volume_reaches_the_cloud_when_the_fence_refuses_it),
)  # fmt: skip

_TABLES: Iterable[tuple[str, str, defects.Plant, FoundBy]] = (
    (f"{TINY} {MYCLOUD} {AWS} {ALICLOUD} {OPENSTACK}", "an error code is not in the table", defects.code_missing,
     test_answers.test_every_error_code_of_the_cloud_becomes_its_typed_error),
    (f"{TINY} {MYCLOUD} {AWS} {ALICLOUD} {OPENSTACK}", "a code in the table is none", defects.code_of_nothing,
     test_answers.test_every_expression_of_the_clouds_error_table_decides_about_one_of_its_codes),
)  # fmt: skip

MUTANTS = tuple(
    Mutant(cloud, defect, plant, found_by, in_table)
    for of, in_table in (((*_LOAD_BALANCERS, *_OTHERS), False), (_TABLES, True))
    for clouds, defect, plant, found_by in of
    for cloud in clouds.split()
)
