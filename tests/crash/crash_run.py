"""How one scenario is run: undisturbed, with the manager killed after a call, with a call's answer lost."""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal

from cloud_controller.cloud import NotFound
from cloud_controller.clouds.mycloud.client import Client
from cloud_controller.kube import NODES, SERVICES, NotFoundError, PatchType
from cloud_controller.load_balancer import PRESERVED_TAG
from tests.crash.environment import Json, Manager, until
from tests.crash.scenarios import SPACE, THEIRS, Run, Scenario

Blow = Literal["kill", "lost answer"]

QUIET = 0.7
"""Seconds without a mutating call after which the manager is taken to have nothing left to do."""
QUIET_AFTER_LOSS = 6.0
"""The same where it may yet come back to what it takes to have failed."""


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run did, and where it ended."""

    calls: tuple[str, ...]
    state: Json


def undisturbed(manager: Manager, scenario: Scenario) -> Reference:
    """Run the scenario in peace."""
    with prepared(manager, scenario) as run:
        manager.recorder.arm()
        since = time.monotonic()
        scenario.act(run)
        until(lambda: scenario.done(run) and manager.recorder.quiet_for(QUIET), f"{scenario.name}: done")
        return Reference(tuple(map(str, manager.recorder.writes(since))), run.snapshot())


def disturbed(
    manager: Manager, scenario: Scenario, reference: Reference, blow: Blow, number: int, quiet: float = QUIET
) -> None:
    """Run it with a blow at mutating call `number`; fails unless the blow falls and it ends as it did in peace."""
    recorder = manager.recorder
    with prepared(manager, scenario) as run:
        recorder.arm(number, manager.kill if blow == "kill" else lambda: None)
        scenario.act(run)
        until(lambda: recorder.sprung, f"call {number} of {len(reference.calls)} is made", 30)
        if blow == "kill":
            assert manager.pid is None, "the manager outlived its kill"
            manager.start()
        try:
            until(
                lambda: scenario.done(run) and run.snapshot() == reference.state and recorder.quiet_for(quiet),
                f"the end of the undisturbed run, after {blow} at {recorder.sprung}",
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{difference(reference.state, run.snapshot())}") from None


def points(scenario: Scenario, blow: Blow, calls: int, every: bool) -> Iterable[int]:
    """The calls at which to strike: each, or one that scenario and blow decide."""
    return range(1, calls + 1) if every else (1 + zlib.crc32(f"{scenario.name} {blow}".encode()) % calls,)


@contextlib.contextmanager
def prepared(manager: Manager, scenario: Scenario) -> Iterator[Run]:
    """The scenario's state at rest; in the end the manager takes away what the run made, and nothing may be left."""
    run = Run(manager.environment)
    try:
        if manager.pid is None:
            manager.start()
        scenario.prepare(run)
        until(lambda: scenario.at_rest(run) and manager.recorder.quiet_for(QUIET), f"{scenario.name}: prepared")
        yield run
        manager.recorder.arm()
        _clean(run)
    except BaseException:
        _force(manager, run)
        raise


def _clean(run: Run) -> None:
    environment = run.environment
    for service in run.services:
        with contextlib.suppress(NotFoundError):
            run.kube.delete(SERVICES, service, SPACE)
    until(lambda: not _services(run), "the Services are gone, and their finalizers", 30)
    until(lambda: not _owned(run), "no load balancer is left", 30)
    for lb in environment.load_balancers():
        if lb["id"] in run.given:
            assert [each["port"] for each in lb["listeners"]] == [THEIRS], f"what was lent came back as {lb}"
        environment.cloud.delete("load_balancers", lb["id"])
    until(lambda: not environment.load_balancers(), "the load balancers that people made are gone", 30)
    for machine in run.machines:
        _end(environment.cloud, machine)
        _delete_node(run, machine)
    until(lambda: not environment.routes(), "no route is left", 40)


def _owned(run: Run) -> list[Json]:
    """The load balancers that no person has to delete."""
    return [
        lb for lb in run.environment.load_balancers() if lb["id"] not in run.given and PRESERVED_TAG not in lb["tags"]
    ]


def _services(run: Run) -> list[str]:
    present = [service["metadata"]["name"] for service in run.kube.list(SERVICES, SPACE).items]
    return [service for service in run.services if service in present]


def _end(cloud: Client, machine: Json) -> None:
    try:
        if cloud.get("machines", machine["id"])["state"] != "terminated":
            cloud.delete("machines", machine["id"])
    except NotFound:
        return


def _force(manager: Manager, run: Run) -> None:
    """So that a run that failed leaves nothing to the next."""
    environment = run.environment
    manager.kill()
    manager.recorder.arm()
    for service in _services(run):
        patch = {"metadata": {"finalizers": None}}
        with contextlib.suppress(NotFoundError):
            run.kube.patch(SERVICES, service, patch, SPACE, type=PatchType.MERGE)
            run.kube.delete(SERVICES, service, SPACE)
    for lb in environment.load_balancers():
        environment.cloud.delete("load_balancers", lb["id"])
        environment.cloud.wait_until_gone("load_balancers", lb["id"], 30)
    for machine in run.machines:
        _end(environment.cloud, machine)
        _delete_node(run, machine)
    table = environment.network["route_table_id"]
    if cidrs := [route["destination_cidr"] for route in environment.routes()]:
        environment.cloud.post(f"route_tables/{table}/routes:batch_delete", {"destination_cidrs": cidrs[:50]})


def _delete_node(run: Run, machine: Json) -> None:
    with contextlib.suppress(NotFoundError):
        run.kube.delete(NODES, machine["name"])


def difference(wanted: Json, found: Json) -> str:
    """How a state differs from the undisturbed one; empty where it does not."""
    before, after = (json.dumps(state, indent=1, sort_keys=True).splitlines() for state in (wanted, found))
    return "\n".join(unified_diff(before, after, "undisturbed", "disturbed", lineterm=""))
