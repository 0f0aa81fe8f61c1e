"""What a cloud answers is passed on: gone, refused, throttled, full; never a guess."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

import pytest

from cloud_controller.cloud import CloudError, QuotaExceeded, Throttled, Unavailable
from cloud_controller.load_balancers.model import LoadBalancerState
from cloud_controller.load_balancers.operations import CreateLoadBalancer, DeleteLoadBalancer
from tests.contract.harness import UID, Harness, differences, web
from tests.contract.process import Process
from tests.contract.wire import Died

PART = "load_balancers"


def test_a_read_returns_the_services_and_ids_that_it_is_asked_for(harness: Harness) -> None:
    node, process = harness.node("one"), Process(harness)
    web_id, shop_id = (process.served(web(harness, name=name), [node]).id for name in ("web", "shop"))

    def ids(*asked: Collection[str]) -> set[str]:
        return {lb.id for lb in Process(harness).load_balancers.read(*asked)}

    assert ids() == {web_id, shop_id}
    assert ids({UID}) == {web_id}
    assert ids({UID}, {shop_id}) == {web_id, shop_id}
    assert ids((), {shop_id}) == {shop_id}
    assert ids({"uid-nobody"}) == set()
    assert ids(()) == set()


def test_a_load_balancer_that_is_gone_is_absent(harness: Harness) -> None:
    process = Process(harness)
    lb = process.served(web(harness), [harness.node("one")])
    process.bring(None)

    for reader in (process, Process(harness)):
        assert list(reader.load_balancers.read({UID})) == []
        assert list(reader.load_balancers.read((), {lb.id})) == []


def test_load_balancers_that_lists_do_not_show_yet_are_read_by_their_ids(harness: Harness) -> None:
    node = harness.node("one")
    harness.lists_lag()
    process = Process(harness)
    wanted = {f"uid-{name}": process.desired(web(harness, name=name), [node]) for name in ("web", "shop")}
    made = [process.create(each, token=process.token(uid)).id for uid, each in wanted.items()]
    harness.settle()

    for ids in ({made[0]}, {*made}):
        for uids in ((), {UID}, None):
            for reader in (process, Process(harness)):
                found = reader.load_balancers.read(uids, ids)
                whole = {lb.id for lb in found if lb.state is not LoadBalancerState.PARTIAL}
                assert ids <= whole, f"read({uids}, {ids})"


def test_a_creation_that_lists_do_not_show_yet_is_not_repeated_with_another_load_balancer(harness: Harness) -> None:
    node = harness.node("one")
    harness.lists_lag()
    process = Process(harness)
    wanted = process.desired(web(harness), [node])
    made = process.create(wanted)

    made_once = harness.snapshot()
    other = Process(harness)
    other.load_balancers.read()
    with suppress(Unavailable):  # It is read again, until a list shows it.
        assert other.create(wanted).id == made.id

    assert not differences(harness.snapshot(), made_once)


def reads(harness: Harness) -> list[Callable[[], object]]:
    """Ways to ask a new process whether the Service's load balancer is there."""
    lb = Process(harness).served(web(harness), [harness.node("one")])
    new = [Process(harness).load_balancers for _ in range(3)]
    return [lambda: new[0].read(), lambda: new[1].read({UID}), lambda: new[2].read((), {lb.id})]


def test_a_throttled_read_raises_with_the_time_to_wait_and_makes_nothing_look_gone(harness: Harness) -> None:
    for read in reads(harness):
        harness.wire.refuse(harness.throttled, retry_after=90)
        with pytest.raises(Throttled) as throttled:
            read()
        assert throttled.value.retry_after > 0


def test_a_read_without_an_answer_raises_and_makes_nothing_look_gone(harness: Harness) -> None:
    for read in reads(harness):
        harness.wire.break_off()
        with pytest.raises(Unavailable):
            read()


def test_a_read_that_breaks_off_at_any_call_raises_and_returns_no_part(harness: Harness) -> None:
    process = Process(harness)
    for name in ("web", "shop", "blog"):
        process.served(web(harness, name=name), [harness.node(name)])
    harness.small_pages()
    harness.wire.reads = 0
    Process(harness).load_balancers.read()
    calls = harness.wire.reads

    for call in range(1, calls + 1):
        load_balancers = Process(harness).load_balancers
        harness.wire.refuse(harness.denied, read=call)
        with pytest.raises(CloudError):
            load_balancers.read()
        harness.wire.peace()


def test_all_load_balancers_are_read_over_all_pages(harness: Harness) -> None:
    node, process = harness.node("one"), Process(harness)
    uids = {f"uid-web-{number}" for number in range(5)}
    for uid in uids:
        process.served(web(harness, 8080, 8443, name=uid.removeprefix("uid-")), [node])
    made = {lb.id: lb for lb in Process(harness).load_balancers.read()}
    harness.small_pages()

    for asked in ((None,), ((), made), (uids,)):
        found = {lb.id: lb for lb in Process(harness).load_balancers.read(*asked)}
        assert found == made, "each with all its parts"


def test_what_is_left_of_creations_is_read_over_all_pages(harness: Harness) -> None:
    node, uids = harness.node("one"), {f"uid-web-{number}" for number in range(3)}
    for uid in uids:
        process = Process(harness)
        wanted = process.desired(web(harness, name=uid.removeprefix("uid-")), [node])
        harness.wire.die(after_write=1)
        with suppress(Died):
            process.create(wanted, token=process.token(uid))
        harness.wire.peace()
    harness.small_pages()

    found = Process(harness).load_balancers.read()

    assert {lb.owner.uid for lb in found if lb.owner is not None} == uids


def test_every_error_code_of_the_cloud_becomes_its_typed_error(harness: Harness) -> None:
    assert {Throttled, Unavailable, QuotaExceeded} <= {*harness.error_codes.values()}

    for code, expected in harness.error_codes.items():
        cloud = harness.new_cloud()
        harness.wire.refuse(code, retry_after=90)
        with pytest.raises(CloudError) as raised:
            harness.ask(cloud)
        # A cloud may have classes of its own below these; CloudError itself says that the code is unknown.
        assert issubclass(type(raised.value), expected), f"{code} became {raised.value!r}"
        assert expected is not CloudError or type(raised.value) is CloudError, f"{code} became {raised.value!r}"


def test_every_expression_of_the_clouds_error_table_decides_about_one_of_its_codes(harness: Harness) -> None:
    deciding = {harness.error_table.expression(code) for code in harness.error_codes}

    assert not harness.error_table.kinds.keys() - deciding


def test_a_creation_beyond_the_quota_is_reported_as_such_and_leaves_nothing_behind(harness: Harness) -> None:
    node, process = harness.node("one"), Process(harness)
    wanted = process.desired(web(harness), [node])
    before = harness.snapshot()
    harness.full()

    (result,) = process.load_balancers.perform(None, [CreateLoadBalancer(wanted, process.token())])

    assert isinstance(result.error, QuotaExceeded)
    Process(harness).bring(None)
    assert not differences(harness.snapshot(), before)


def test_the_observer_gets_every_attempt_with_its_operation_and_error(harness: Harness) -> None:
    process = Process(harness)
    lb = process.served(web(harness), [harness.node("one")])
    seen: list[tuple[str, float, CloudError | None]] = []
    process.cloud.observe_calls(lambda *call: seen.append(call))

    harness.wire.writes.clear()
    process.change(lb, DeleteLoadBalancer(lb.id))
    harness.wire.refuse(harness.throttled, retry_after=90)
    with pytest.raises(Throttled):
        process.load_balancers.read()

    assert len(seen) > len(harness.wire.writes) > 0
    assert all(lb.id not in operation for operation, _, _ in seen), "an operation never names an object"
    assert all(seconds >= 0 for _, seconds, _ in seen)
    assert isinstance(seen[-1][2], Throttled)
    assert seen[0][2] is None
