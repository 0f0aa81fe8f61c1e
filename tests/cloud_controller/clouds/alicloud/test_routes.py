"""Routes on Alibaba Cloud: batches, several tables, machines that are gone, and what the table refuses."""

from __future__ import annotations

import pytest

from cloud_controller.cloud import (
    AccessDenied,
    Conflict,
    InvalidConfiguration,
    NotFound,
    Route,
    Throttled,
    Unavailable,
)
from cloud_controller.clouds.alicloud.routes import VpcRoutes
from local.alicloud import machines
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from tests.cloud_controller.clouds.alicloud.account import Account
from tests.cloud_controller.clouds.alicloud.fake_http import client, refusal


def routes_to(machine: str, count: int, first: int = 0) -> list[Route]:
    return [Route(f"10.1.{number}.0/24", machine) for number in range(first, first + count)]


def entries(alicloud: Account) -> set[tuple[str, str, str]]:
    return {(each["table"], each["cidr"], each["hop"]) for each in alicloud.objects(machines.ROUTE)}


def add_route(alicloud: Account, table: str, route: Route) -> None:
    entry = {"RouteTableId": table, "DstCidrBlock": route.destination_cidr, "NextHop": route.target_instance}
    asked = {"RouteEntries": [{**entry, "NextHopType": "Instance"}]}
    assert alicloud.cloud()._client.call("vpc", "CreateRouteEntries", asked)["FailedCount"] == 0
    alicloud.calls()


def test_routes_are_created_fifty_in_a_call(alicloud: Account) -> None:
    alicloud.standin.world.quotas.custom_routes = 200
    wanted = routes_to(alicloud.machine("one"), 120)
    routes = alicloud.cloud().routes

    assert list(routes.create(wanted)) == []
    calls = alicloud.calls()
    assert list(routes.delete(wanted)) == []

    assert calls == {
        "vpc.DescribeRouteTableList": 1,
        "ecs.DescribeInstances": 1,
        "ecs.DescribeNetworkInterfaces": 1,
        "ecs.ModifyNetworkInterfaceAttribute": 1,
        "vpc.CreateRouteEntries": 3,
    }
    assert alicloud.calls() == {"vpc.DeleteRouteEntries": 3}
    assert entries(alicloud) == set()


def test_the_check_is_turned_off_once_for_each_machine(alicloud: Account) -> None:
    one, two = alicloud.machine("one"), alicloud.machine("two")
    cloud = alicloud.cloud()
    cloud.routes.create([*routes_to(one, 2), *routes_to(two, 2, 5)])
    alicloud.calls()

    cloud.routes.create([*routes_to(one, 1, 10), *routes_to(two, 1, 11)])

    assert [each["source_check"] for each in alicloud.objects(machines.ENI)] == [False, False]
    assert alicloud.calls() == {"vpc.CreateRouteEntries": 1}


def test_a_machine_whose_check_stays_on_gets_no_route_and_the_others_do(alicloud: Account) -> None:
    one, two = alicloud.machine("one"), alicloud.machine("two")
    denied = Refusal(403, "Forbidden.RAM", "not authorized")
    alicloud.standin.faults.add(Fault("ecs.ModifyNetworkInterfaceAttribute", denied))

    (failure,) = alicloud.cloud().routes.create([*routes_to(one, 1), *routes_to(two, 1, 5)])

    assert isinstance(failure.error, AccessDenied)
    assert len(entries(alicloud)) == 1


def test_a_machine_whose_interface_is_not_shown_gets_its_route_once_the_check_is_off(alicloud: Account) -> None:
    cloud, wanted = alicloud.cloud(), routes_to(alicloud.machine("one"), 1)
    cloud.instances.list()
    (interface,) = alicloud.objects(machines.ENI)
    with alicloud.standin.changing() as world:
        world.store.remove(machines.ENI, interface["id"])

    (failure,) = cloud.routes.create(wanted)

    assert isinstance(failure.error, Unavailable)
    assert entries(alicloud) == set()
    with alicloud.standin.changing() as world:
        world.store.put(machines.ENI, interface["id"], interface)
    assert list(cloud.routes.create(wanted)) == []
    assert [each["source_check"] for each in alicloud.objects(machines.ENI)] == [False]


def test_a_network_with_several_tables_needs_the_cloud_config_to_name_some(alicloud: Account) -> None:
    other = alicloud.add_table()
    routes = alicloud.cloud().routes

    with pytest.raises(InvalidConfiguration, match=f"routeTableIDs: missing, and vpc-cluster has .*{other}"):
        routes.list()
    (failure,) = routes.create([Route("10.1.0.0/24", alicloud.machine("one"))])
    assert isinstance(failure.error, InvalidConfiguration)


def test_a_table_that_does_not_exist_is_an_error_of_the_cloud_config(alicloud: Account) -> None:
    with pytest.raises(InvalidConfiguration, match="routeTableIDs: route table vtb-none does not exist"):
        alicloud.cloud(route_table_ids=("vtb-none",)).routes.list()


def test_a_route_is_in_every_table(alicloud: Account) -> None:
    tables = (alicloud.table, alicloud.add_table())
    machine = alicloud.machine("one")
    routes = alicloud.cloud(route_table_ids=tables).routes

    assert list(routes.create(routes_to(machine, 1))) == []

    assert entries(alicloud) == {(table, "10.1.0.0/24", machine) for table in tables}
    assert [*routes.list()] == [Route("10.1.0.0/24", machine, owned=None)]
    assert list(routes.delete(routes_to(machine, 1))) == []
    assert entries(alicloud) == set()


def test_a_route_that_one_table_lacks_is_partial_and_is_added_there(alicloud: Account) -> None:
    tables = (alicloud.table, alicloud.add_table())
    machine = alicloud.machine("one")
    add_route(alicloud, tables[1], Route("10.1.0.0/24", machine))
    routes = alicloud.cloud(route_table_ids=tables).routes

    (found,) = routes.list()
    assert list(routes.create(routes_to(machine, 1))) == []

    assert found == Route("10.1.0.0/24", machine, owned=None, partial=True)
    assert entries(alicloud) == {(table, "10.1.0.0/24", machine) for table in tables}


def test_a_route_to_a_machine_that_is_gone_has_no_target_and_can_be_deleted(alicloud: Account) -> None:
    machine = alicloud.machine("one")
    alicloud.cloud().routes.create(routes_to(machine, 1))
    alicloud.release(machine)

    (found,) = alicloud.cloud().routes.list()
    assert found == Route("10.1.0.0/24", "", blackhole=True, owned=None)
    assert list(alicloud.cloud().routes.delete([found])) == []
    assert entries(alicloud) == set()


def test_where_another_table_leads_the_range_of_a_machine_that_is_gone_elsewhere_that_route_stays(
    alicloud: Account,
) -> None:
    def table(kind: str, hop: str) -> dict[str, object]:
        hops = {"NextHop": [{"NextHopType": kind, "NextHopId": hop}]}
        return {"RouteEntrys": {"RouteEntry": [{"DestinationCidrBlock": "10.1.0.0/24", "NextHops": hops}]}}

    one, http = client(table("Instance", "i-gone"), table("NatGateway", "ngw-1"), {}, {})
    cloud = alicloud.cloud(route_table_ids=("vtb-1", "vtb-2"))
    routes = VpcRoutes(one, cloud._config, cloud.instances, cloud._concurrently)

    (found,) = routes.list()
    assert found.blackhole
    assert list(routes.delete([found])) == []

    deleted = [sent.query["RouteEntries.1.NextHop"] for sent in http.sent if sent.action == "DeleteRouteEntries"]
    assert deleted == ["i-gone"]


def test_a_machine_that_ends_while_the_process_runs_is_noticed_with_the_next_list_of_machines(
    alicloud: Account,
) -> None:
    machine = alicloud.machine("one")
    cloud = alicloud.cloud()
    cloud.instances.list()
    cloud.routes.create(routes_to(machine, 1))
    alicloud.release(machine)

    before, _, (after,) = cloud.routes.list(), cloud.instances.list(), cloud.routes.list()

    assert [each.blackhole for each in before] == [False]
    assert after.blackhole


def test_routes_to_other_things_than_machines_are_foreign() -> None:
    one, _ = client(
        {
            "RouteEntrys": {
                "RouteEntry": [
                    {
                        "DestinationCidrBlock": "10.9.0.0/24",
                        "NextHops": {"NextHop": [{"NextHopType": "NatGateway", "NextHopId": "ngw-1"}]},
                    }
                ]
            }
        }
    )
    account = Account()
    cloud = account.cloud(route_table_ids=("vtb-1",))
    routes = VpcRoutes(one, cloud._config, cloud.instances, cloud._concurrently)

    assert [*routes.list()] == [Route("10.9.0.0/24", "ngw-1", owned=False)]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("VPC_ROUTE_ENTRY_STATUS_ERROR", Conflict),
        ("IncorrectRouteEntryStatus", Conflict),
        ("OperationConflict", Conflict),
        ("TaskConflict", Conflict),
        ("Throttling.User", Throttled),
        ("SystemBusy", Unavailable),
    ],
)
def test_a_table_that_is_being_changed_refuses_with_a_typed_error(
    alicloud: Account, code: str, error: type[Exception]
) -> None:
    cloud = alicloud.cloud(route_table_ids=(alicloud.table,))
    alicloud.standin.faults.add(Fault("vpc.CreateRouteEntries", Refusal(400, code, "busy"), count=None))

    failures = cloud.routes.create(routes_to(alicloud.machine("one"), 2))

    assert [type(failure.error) for failure in failures] == [error, error]


def test_a_batch_that_fails_leaves_the_other_batches_alone(alicloud: Account) -> None:
    alicloud.standin.world.quotas.custom_routes = 200
    wanted = routes_to(alicloud.machine("one"), 60)
    busy = Refusal(400, "OperationConflict", "busy")
    alicloud.standin.faults.add(Fault("vpc.CreateRouteEntries", busy))

    failures = alicloud.cloud().routes.create(wanted)

    assert {failure.route for failure in failures} == {*wanted[:50]}
    assert len(entries(alicloud)) == 10


def test_the_quota_is_that_of_the_account() -> None:
    one, http = client({"Quota": {"TotalQuota": 200.0}})
    cloud = Account().cloud()

    assert VpcRoutes(one, cloud._config, cloud.instances, cloud._concurrently).quota() == 200
    assert http.sent[0].form == {"ProductCode": "vpc", "QuotaActionCode": "vpc_quota_route_entrys_num"}


@pytest.mark.parametrize("code", ["NoPermission", "QUOTA.NOT.EXIST", "InvalidVersion"])
def test_a_quota_that_cannot_be_read_is_unknown(code: str) -> None:
    one, _ = client(refusal(code))
    cloud = Account().cloud()

    assert VpcRoutes(one, cloud._config, cloud.instances, cloud._concurrently).quota() is None


def test_a_route_that_another_process_deleted_meanwhile_is_deleted_with_success(alicloud: Account) -> None:
    machine = alicloud.machine("one")
    cloud = alicloud.cloud(route_table_ids=(alicloud.table,))
    gone = Refusal(404, "InvalidRouteEntry.NotFound", "the whole call fails")
    alicloud.standin.faults.add(Fault("vpc.DeleteRouteEntries", gone))
    add_route(alicloud, alicloud.table, Route("10.1.1.0/24", machine))

    (failure,) = cloud.routes.delete(routes_to(machine, 2))

    assert failure.route.destination_cidr == "10.1.1.0/24"
    assert isinstance(failure.error, NotFound)


@pytest.mark.parametrize("answer", [{"InstanceId": "i-1"}, refusal("Forbidden.RAM", status=403)])
def test_a_route_to_a_machine_that_lists_leave_out_is_not_taken_for_one_to_nothing(
    alicloud: Account, answer: object
) -> None:
    machine = alicloud.machine("one")
    add_route(alicloud, alicloud.table, Route("10.1.0.0/24", machine))
    cloud = alicloud.cloud()
    cloud.instances._client, http = client({"Instances": {"Instance": []}}, answer)

    for _ in range(2):
        assert [*cloud.routes.list()] == [Route("10.1.0.0/24", machine, owned=None)]

    assert [sent.action for sent in http.sent] == ["DescribeInstances", "DescribeInstanceAttribute"]


def test_a_route_for_ipv6_is_known_in_every_spelling() -> None:
    hop = {"NextHops": {"NextHop": [{"NextHopType": "Instance", "NextHopId": "i-1"}]}}
    one, http = client(
        {
            "FailedRouteEntries": [
                {"DstCidrBlock": "FD00:0:0:1::/64", "FailedCode": "VPC_ROUTE_ENTRY_CIDR_BLOCK_DUPLICATE"}
            ]
        },
        {"RouteEntrys": {"RouteEntry": [{"DestinationCidrBlock": "FD00:0:0:1::/64", **hop}]}},
    )
    cloud = Account().cloud(route_table_ids=("vtb-1",))
    routes = VpcRoutes(one, cloud._config, cloud.instances, cloud._concurrently)
    routes._check._off = {"i-1"}

    assert list(routes.create([Route("fd00:0:0:1::/64", "i-1")])) == []
    assert http.sent[0].query["RouteEntries.1.IpVersion"] == "6"


def test_a_table_that_was_replaced_is_found_again(alicloud: Account) -> None:
    routes = alicloud.cloud().routes
    assert list(routes.list()) == []
    with alicloud.standin.changing() as world:
        world.store.remove(machines.ROUTE_TABLE, alicloud.table)
    alicloud.add_table()

    with pytest.raises(InvalidConfiguration, match="does not exist"):
        routes.list()
    assert list(routes.list()) == []
