"""What the service controller remembers of the cloud: reads of the whole and of one Service, in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from cloud_controller.cloud import AccessDenied, InvalidConfiguration
from cloud_controller.controllers.service.cache import LoadBalancerCache
from cloud_controller.load_balancers.apply_operation import apply_operation
from cloud_controller.load_balancers.model import (
    SERVICE_TAG,
    Adoptable,
    LoadBalancerModel,
    LoadBalancerState,
    ObservedLoadBalancer,
    Owner,
)
from cloud_controller.load_balancers.operations import DeleteLoadBalancer
from tests.waiting import eventually


class Reads:
    """A cloud that only reads; `during` happens while a read is under way."""

    def __init__(self, *present: ObservedLoadBalancer) -> None:
        self.present = [*present]
        self.asked: list[Collection[str] | None] = []
        self.during: Callable[[], None] = lambda: None

    @property
    def builder(self) -> Reads:
        return self

    def foreign_name(self, owner: Owner) -> str:
        return f"foreign-{owner.uid}"

    def read(
        self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
    ) -> Sequence[ObservedLoadBalancer]:
        self.asked.append(service_uids)
        found = [
            lb
            for lb in self.present
            if service_uids is None or lb.id in ids or {owner.uid for owner in lb.owners} & set(service_uids)
        ]
        happens, self.during = self.during, lambda: None
        happens()
        return found


def load_balancer(
    name: str = "web", uid: str = "uid-1", *, cluster: str = "c-1", settled: bool = True
) -> ObservedLoadBalancer:
    tags = Owner(cluster, uid, "default", name).tags
    model = LoadBalancerModel(name, tags=tags)
    return ObservedLoadBalancer(f"lb-{uid}", LoadBalancerState.READY, model, settled=settled)


def cache(reads: Reads) -> LoadBalancerCache:
    return LoadBalancerCache(reads, "c-1")  # type: ignore[arg-type]


def test_a_full_read_indexes_load_balancers_by_service() -> None:
    reads = Reads(load_balancer("web", "uid-1"), load_balancer("dns", "uid-2"))
    known = cache(reads)

    known.load({})

    assert known.keys() == {"default/web", "default/dns"}
    assert known.get("default/web") == (load_balancer("web", "uid-1"),)
    assert known.get("default/none") == ()
    assert reads.asked == [None]


def test_what_the_cloud_refuses_to_show_keeps_nothing_else_from_being_read_and_stays_known() -> None:
    class Refusing(Reads):
        def read(
            self, service_uids: Collection[str] | None = None, ids: Collection[str] = ()
        ) -> Sequence[ObservedLoadBalancer]:
            if "lb-uid-1" in ids:
                raise AccessDenied("not yours")
            return super().read(service_uids, ids)

    refusing, known = Refusing(load_balancer("dns", "uid-2")), cache(Reads(load_balancer()))
    known.load({})
    known._load_balancers = refusing  # type: ignore[assignment]
    known.mark_dirty("default/web")
    known.mark_dirty("default/dns")

    known.load({}, ["lb-gone"])

    assert known.get("default/dns") == (load_balancer("dns", "uid-2"),)
    assert known.get("default/web") == (load_balancer(),)
    assert [known.is_dirty(f"default/{each}") for each in ("web", "dns")] == [True, False]


def test_a_refresh_during_a_full_read_is_newer_and_stays() -> None:
    reads = Reads()
    known = cache(reads)

    def made_meanwhile() -> None:
        reads.present = [load_balancer()]
        known.refresh([("default/web", "uid-1")])

    reads.during = made_meanwhile
    known.load({})

    assert known.get("default/web") == (load_balancer(),)


def test_a_service_marked_dirty_during_a_full_read_stays_dirty() -> None:
    reads = Reads(load_balancer())
    known = cache(reads)
    reads.during = lambda: known.mark_dirty("default/web")

    known.load({})

    assert known.is_dirty("default/web")
    known.refresh([("default/web", "uid-1")])
    assert not known.is_dirty("default/web")


def test_a_full_read_clears_earlier_dirty_marks() -> None:
    known = cache(Reads(load_balancer()))
    known.mark_dirty("default/web")

    known.load({})

    assert not known.is_dirty("default/web")


def test_refreshing_one_uid_keeps_other_services_of_the_same_name() -> None:
    reads = Reads(load_balancer(uid="uid-1"), load_balancer(uid="uid-2"))
    known = cache(reads)
    known.load({})
    reads.present = [load_balancer(uid="uid-1")]

    known.refresh([("default/web", "uid-2")])

    assert known.get("default/web") == (load_balancer(uid="uid-1"),)


def test_unsettled_load_balancers_are_read_in_one_batch() -> None:
    reads = Reads(
        load_balancer("a", "1", settled=False), load_balancer("b", "2"), load_balancer("c", "3", settled=False)
    )
    known = cache(reads)
    known.load({})

    assert known.unsettled() == {"lb-1": {"default/a"}, "lb-3": {"default/c"}}


def test_workers_that_read_at_once_share_a_read_and_a_refused_one_concerns_only_its_service() -> None:
    reads = Reads(load_balancer("a", "1"), load_balancer("b", "2"))
    known = cache(reads)
    under_way, gate = threading.Event(), threading.Event()

    def wait() -> None:
        under_way.set()
        assert gate.wait(60)

    def refuse(uids: Collection[str] | None, ids: Collection[str]) -> Sequence[ObservedLoadBalancer]:
        if "lb-bad" in ids:
            reads.asked.append(uids)
            raise InvalidConfiguration("load-balancer-id", "is not an ID")
        return present(uids, ids)

    reads.during, present, reads.read = wait, reads.read, refuse  # type: ignore[assignment,method-assign]
    with ThreadPoolExecutor(4) as pool:
        pool.submit(known.refresh, [("default/first", "0")])
        assert under_way.wait(60)
        a, b = (pool.submit(known.refresh, [(f"default/{name}", uid)]) for name, uid in (("a", "1"), ("b", "2")))
        c = pool.submit(known.refresh, [("default/c", "3")], ["lb-bad"])
        eventually(lambda: known._refreshes._next.callers == 3, "three have joined")
        known.mark_dirty("default/a")
        gate.set()
        assert isinstance(c.exception(60), InvalidConfiguration)
        assert (a.result(60), b.result(60)) == (None, None)

    assert [*map(set, reads.asked[:2])] == [{"0"}, {"1", "2", "3"}]  # type: ignore[arg-type]
    assert sorted(map(sorted, reads.asked[2:])) == [["1"], ["2"], ["3"]]  # type: ignore[arg-type]
    assert (known.get("default/a"), known.get("default/b")) == ((reads.present[0],), (reads.present[1],))
    assert not known.is_dirty("default/a"), "marked before the shared read began"


def test_a_dropped_load_balancer_stays_away_from_a_read_that_was_under_way() -> None:
    reads = Reads(load_balancer())
    known = cache(reads)
    known.load({})
    reads.during = lambda: known.drop("lb-uid-1")

    known.refresh((), ["lb-uid-1"])

    assert (known.keys(), known.get("default/web")) == (set(), ())


def test_progress_seen_by_any_read_is_reported_once_per_service() -> None:
    reads = Reads(load_balancer("a", "1", settled=False), load_balancer("b", "2", settled=False))
    known = cache(reads)
    known.load({})
    known.refresh((), ["lb-1", "lb-2"])
    assert known.take_progressed() == set(), "nothing has changed yet"

    reads.present = [load_balancer("a", "1"), load_balancer("b", "2", settled=False)]
    known.refresh([("default/other", "3")], ["lb-1"])

    assert known.take_progressed() == {"default/a"}
    assert known.take_progressed() == set()


def test_the_disappearance_of_a_pending_load_balancer_is_progress_too() -> None:
    reads = Reads(load_balancer("a", "1", settled=False))
    known = cache(reads)
    known.load({})

    reads.present = []
    known.refresh((), ["lb-1"])

    assert known.take_progressed() == {"default/a"}


def test_the_remains_of_a_deletion_requeue_their_service() -> None:
    left = replace(load_balancer("a", "1", settled=False), state=LoadBalancerState.PARTIAL)
    reads = Reads(left)
    known = cache(reads)
    known.load({})
    known.put("default/a", "1", apply_operation(left, DeleteLoadBalancer("lb-1")))

    known.refresh((), ["lb-1"])

    assert known.take_progressed() == {"default/a"}


def test_the_cache_ignores_load_balancers_of_other_clusters() -> None:
    known = cache(Reads(load_balancer(cluster="c-2")))

    known.load({})

    assert known.keys() == set()


def test_the_uid_tag_takes_precedence_over_the_name_tag() -> None:
    reads = Reads(load_balancer("renamed-by-hand", "uid-1"))
    known = cache(reads)

    known.load({"uid-1": "default/web"})
    assert (known.keys(), known.get("default/web")) == ({"default/web"}, (load_balancer("renamed-by-hand", "uid-1"),))

    known.refresh([("default/web", "uid-1")])
    assert known.keys() == {"default/web"}


def test_a_load_balancer_without_name_tag_is_cached_only_if_its_uid_is_known() -> None:
    nameless = load_balancer()
    tags = {key: value for key, value in nameless.model.tags.items() if key != SERVICE_TAG}
    nameless = replace(nameless, model=replace(nameless.model, tags=tags))
    known = cache(Reads(nameless))

    known.load({})
    assert known.keys() == set()

    known.load({"uid-1": "default/web"})
    assert known.get("default/web") == (nameless,)


def foreign(uid: str = "uid-1", refusal: str | None = None) -> ObservedLoadBalancer:
    adoptable = Adoptable("the other controller", f"foreign-{uid}", "default/web", refusal)
    return ObservedLoadBalancer(f"lb-{uid}", LoadBalancerState.READY, LoadBalancerModel("web"), adoptable=adoptable)


def test_an_adoptable_load_balancer_belongs_to_the_service_of_its_name() -> None:
    known = cache(Reads(foreign("uid-1")))

    known.load({"uid-1": "default/web"})

    assert [lb.id for lb in known.get("default/web")] == ["lb-uid-1"]
    assert known.owners("default/web") == ()
    assert known.unclaimed() == []


def test_an_adoptable_load_balancer_without_a_service_is_unclaimed() -> None:
    known = cache(Reads(foreign("uid-1"), foreign("uid-2", refusal="it is another cluster's")))

    known.load({"uid-3": "default/web"})

    assert known.keys() == set()
    assert [lb.id for lb in known.unclaimed()] == ["lb-uid-1"]
