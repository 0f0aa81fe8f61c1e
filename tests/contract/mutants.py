"""Defects planted in clouds, and for each the test of the suite that must fail because of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.contract import (
    defects,
    test_answers,
    test_changes,
    test_creation,
    test_fencing,
    test_interruptions,
    test_machines,
    test_ownership,
    test_plans,
    test_routes,
    test_volumes,
)
from tests.contract.harness import Harness


@dataclass(frozen=True)
class Mutant:
    """A defect of a cloud. `plant` changes what `Harness.new_cloud` has returned."""

    of: str
    defect: str
    plant: Callable[[Any], None]
    found_by: Callable[[Harness], None]

    def __str__(self) -> str:
        return f"{self.of}: {self.defect}"


class Planted:
    """A harness of a cloud that has the defect."""

    def __init__(self, harness: Harness, plant: Callable[[Any], None]) -> None:
        self._harness = harness
        self._plant = plant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def new_cloud(self) -> Any:
        """The cloud with its defect."""
        cloud = self._harness.new_cloud()
        self._plant(cloud)
        return cloud


TINY, MYCLOUD, AWS, CLASSIC, ALICLOUD = "tinycloud", "mycloud", "aws", "aws_classic", "alicloud"

MUTANTS = tuple(
    Mutant(*each)
    for each in (
        (TINY, "the client token is ignored", defects.calls(defects.token_ignored),
         test_creation.test_the_same_token_never_makes_a_second_load_balancer),
        (TINY, "the cluster's mark is not written", defects.calls(defects.mark_not_written),
         test_ownership.test_every_part_of_a_load_balancer_carries_the_owners_mark),
        (TINY, "a deletion goes by the name", defects.calls(defects.deletion_by_name),
         test_ownership.test_foreign_resources_are_the_same_after_a_load_balancers_whole_life),
        (TINY, "only the first page is read", defects.calls(defects.one_page_only),
         test_answers.test_all_load_balancers_are_read_over_all_pages),
        (TINY, "a list without an answer is empty", defects.calls(defects.silence_is_an_empty_list),
         test_answers.test_a_read_without_an_answer_raises_and_makes_nothing_look_gone),
        (TINY, "throttling is taken for gone", defects.calls(defects.throttled_is_gone),
         test_answers.test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone),
        (TINY, "ids that a list lacks are not read", defects.calls(defects.ids_not_read),
         test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
        (TINY, "the quota's error has no type", defects.calls(defects.untyped_quota),
         test_answers.test_a_creation_beyond_the_quota_is_reported_as_such_and_leaves_nothing_behind),
        (TINY, "the time to wait is dropped", defects.calls(defects.no_time_to_wait),
         test_answers.test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone),
        (TINY, "what is gone cannot be deleted", defects.missing_is_an_error_for_deletions,
         test_changes.test_a_repeated_deletion_succeeds),
        (TINY, "the fence is not asked", defects.fence_not_passed_on,
         test_fencing.test_no_creation_reaches_the_cloud_when_the_fence_refuses_it),
        (TINY, "the fence is asked once an operation", defects.fence_asked_at_the_first_attempt_only,
         test_fencing.test_each_attempt_at_a_write_asks_the_fence_again),
        (TINY, "the observer does not see failures", defects.failed_attempts_unobserved,
         test_answers.test_the_observer_gets_every_attempt_with_its_operation_and_error),
        (TINY, "errors are swallowed", defects.performs(defects.errors_swallowed),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "errors are raised", defects.performs(defects.errors_raised),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "results are out of order", defects.performs(defects.results_reversed),
         test_changes.test_a_change_has_one_result_for_each_operation_in_their_order),
        (TINY, "what depends on a failure is done", defects.performs(defects.continues_after_a_failure),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "members do not change after a failure", defects.performs(defects.stops_at_the_first_failure),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (MYCLOUD, "what was not attempted is reported as done",
         defects.performs(defects.reports_what_it_did_not_attempt),
         test_changes.test_whichever_write_is_refused_only_changes_of_members_follow),
        (TINY, "members are not added", defects.performs(defects.members_added_once_only),
         test_changes.test_after_a_change_the_load_balancer_is_as_the_operations_say),
        (MYCLOUD, "what the cloud is still doing is called settled", defects.performs(defects.settled_too_early),
         test_changes.test_what_is_called_settled_is_complete_before_any_time_passes),
        (TINY, "what failed is called settled", defects.performs(defects.settled_too_early),
         test_changes.test_what_failed_or_waits_is_not_called_settled),
        (TINY, "building asks the cloud", defects.building_asks, test_plans.test_a_plan_makes_no_call),
        (TINY, "a pool stays", defects.performs(defects.a_part_stays),
         test_interruptions.test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes),
        (MYCLOUD, "a list proves a machine gone", defects.a_list_is_proof,
         test_machines.test_a_machine_that_lists_do_not_show_yet_is_not_gone),
        (MYCLOUD, "a list proves a volume gone", defects.a_list_is_proof,
         test_volumes.test_a_volume_that_lists_do_not_show_yet_is_not_gone),
        (MYCLOUD, "silence proves a machine gone", defects.silence_proves_a_machine_gone,
         test_machines.test_no_machine_is_gone_while_the_cloud_throttles),
        (MYCLOUD, "another cloud's machine is gone", defects.another_clouds_machine_is_gone,
         test_machines.test_the_provider_id_of_another_cloud_is_an_error_that_names_the_node),
        (MYCLOUD, "machines of others are listed", defects.foreign_machines_listed,
         test_machines.test_machines_are_listed_over_all_pages_and_without_foreign_ones),
        (MYCLOUD, "machines are described one by one", defects.one_call_for_each_machine,
         test_machines.test_many_machines_cost_few_calls),
        (MYCLOUD, "failures of routes are dropped", defects.route_failures_dropped,
         test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
        (MYCLOUD, "one refused route refuses all", defects.one_refused_route_refuses_all,
         test_routes.test_a_route_to_another_machine_is_a_conflict_of_its_own_and_stays),
        (MYCLOUD, "unowned routes are deleted", defects.unowned_routes_deleted,
         test_routes.test_foreign_routes_are_listed_and_stay_as_they_are),
        (MYCLOUD, "every route is owned", defects.all_routes_owned,
         test_routes.test_foreign_routes_are_listed_and_stay_as_they_are),
        (MYCLOUD, "a volume's token is ignored", defects.volume_token_ignored,
         test_volumes.test_a_volume_is_created_once_a_token),
        (AWS, "target groups stay", defects.aws_calls(defects.target_groups_stay),
         test_ownership.test_the_load_balancer_of_another_service_stays_when_one_is_deleted),
        (AWS, "parts without their load balancer are not looked for", defects.parts_not_looked_for,
         test_creation.test_a_partial_creation_that_nobody_wants_any_more_leaves_nothing),
        (ALICLOUD, "a machine is opened after its routes", defects.machines_opened_after_their_routes,
         test_routes.test_a_process_that_ends_after_any_write_is_followed_by_one_that_finishes),
        (AWS, "security groups have no tags", defects.aws_calls(defects.groups_without_tags),
         test_ownership.test_every_part_of_a_load_balancer_carries_the_owners_mark),
        (CLASSIC, "load balancers lack a Service's tag", defects.aws_calls(defects.load_balancers_without_a_service),
         test_ownership.test_every_part_of_a_load_balancer_carries_the_owners_mark),
        (CLASSIC, "only the first page is read", defects.aws_calls(defects.first_page_only),
         test_answers.test_all_load_balancers_are_read_over_all_pages),
        (CLASSIC, "ids that a list lacks are not read", defects.lists_believed,
         test_answers.test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids),
    )
)  # fmt: skip
