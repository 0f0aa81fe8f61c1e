"""Workers that wait for jobs at once look at them together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cloud_controller.cloud import CloudError, Postponed
from cloud_controller.clouds.alicloud.nlb.jobs import Jobs
from tests.waiting import eventually


class Api:
    """Knows the status of each job. Its first answer comes when `gate` is open."""

    def __init__(self, **statuses: str) -> None:
        self.statuses = statuses
        self.asked: list[list[str]] = []
        self.gate = threading.Event()

    def call(self, product: str, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        assert (product, action) == ("nlb", "ListAsynJobs")
        self.asked.append([*parameters["JobIds"]])
        assert self.gate.wait(60)
        return {"Jobs": [{"Id": each, "Status": self.statuses[each]} for each in parameters["JobIds"]]}

    def pages(self, *_: object) -> Iterable[dict[str, Any]]:
        raise AssertionError("jobs have no pages")


def waiting(api: Api, jobs: Jobs) -> list[dict[str, CloudError | None]]:
    """The outcomes that three workers get, each of its own job, when a fourth's look is under way."""
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(jobs.outcomes, {"a": "first"})
        eventually(lambda: api.asked, "the first look begins")
        others = [pool.submit(jobs.outcomes, {name: name}) for name in "bcd"]
        eventually(lambda: jobs._statuses._next.asked == {*"bcd"}, "the others join the next look")
        api.gate.set()
        assert first.result(60) == {"a": None}
        return [each.result(60) for each in others]


def made(api: Api, failed: list[str]) -> Jobs:
    return Jobs(api, lambda: 1, patience=0.0, sleep=lambda _: None, failed=failed.append)


def test_workers_that_wait_during_a_look_share_the_next_one() -> None:
    api, failed = Api(a="Succeeded", b="Succeeded", c="Failed", d="Processing"), list[str]()

    b, c, d = waiting(api, made(api, failed))

    assert api.asked == [["a"], ["b", "c", "d"]]
    assert b == {"b": None}
    assert str(c["c"]) == "Alibaba Cloud: nlb c failed (job c)"
    assert failed == ["c"]
    assert isinstance(d["d"], Postponed)


def test_a_look_takes_twenty_jobs_a_call() -> None:
    names = [f"job-{number:02}" for number in range(45)]
    api = Api(**dict.fromkeys(names, "Succeeded"))
    api.gate.set()

    assert made(api, []).outcomes(dict.fromkeys(names, "one")) == dict.fromkeys(names)

    assert [len(each) for each in api.asked] == [20, 20, 5]
