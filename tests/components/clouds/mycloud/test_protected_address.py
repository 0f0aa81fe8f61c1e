"""A protected Service in the embedded engine: hook, config and the daemon's plan together."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from tests.local.engine.stack_under_test import StackUnderTest

from components import address_change
from components.load_balancer_service import LoadBalancerService
from local.plugins.recorder import Recorder
from tests.cloud_controller.clouds.mycloud.services import SCHEME
from tests.cloud_controller.load_balancing import Running, changed

pytestmark = pytest.mark.engine
INTERNAL = {SCHEME: "internal"}


@pytest.fixture
def stack(tmp_path: Path, running: Running, monkeypatch: pytest.MonkeyPatch) -> StackUnderTest:
    """A stack whose program has the Service `default/web`, which a daemon serves."""
    made = StackUnderTest(tmp_path)
    made.factories = dict.fromkeys(("kubernetes", "pulumi-python"), lambda r: Recorder(r.inputs))
    # The engine only records objects here; the cluster that the program looks at is the daemon's.
    monkeypatch.setattr(address_change, "SIMULATED", "nothing is")
    config = {"test:mycloud": {"endpoint": "http://127.16.0.1:7070"}, "test:mycloudToken": "t"}
    made.configure(config, salt="")
    assert made.up(program()).ok
    assert running.cluster.ingress
    return made


def program(annotations: dict[str, str] | None = None, **more: Any) -> Callable[[], None]:
    def declare() -> None:
        args: Any = {"cloud": "mycloud", "selector": {"app": "web"}, "ports": [{"port": 8080}], **more}
        args |= {"annotations": annotations or {}, "cluster": {"cluster_id": "c-1", "network_id": "n-1"}}
        LoadBalancerService("web", args, opts=pulumi.ResourceOptions(protect=True))

    return declare


def printed(errors: list[str]) -> str:
    """The digest that a failed preview prints."""
    [digest] = {each for error in errors for each in re.findall('default/web: "([0-9a-f]+)"', error)}
    return str(digest)


def test_a_preview_fails_until_the_digest_that_it_prints_is_given(stack: StackUnderTest) -> None:
    refused = stack.preview(program(INTERNAL))

    assert not refused.ok
    assert any("scheme: internet-facing -> internal" in error for error in refused.errors)
    acknowledged = program(INTERNAL, replace_address=printed(refused.errors))
    assert stack.preview(acknowledged).ok
    done = stack.up(acknowledged)
    assert done.ok and any("scheme: internet-facing -> internal" in each for each in done.warnings)


def test_an_update_without_a_preview_changes_nothing_either(stack: StackUnderTest) -> None:
    before = stack.resources()["web"]

    assert not stack.up(program(INTERNAL)).ok
    assert stack.resources()["web"] == before


def test_the_digest_of_a_change_that_happened_lets_no_other_happen(stack: StackUnderTest, running: Running) -> None:
    digest = printed(stack.preview(program(INTERNAL)).errors)
    assert stack.up(program(INTERNAL, replace_address=digest)).ok
    changed(running.cluster, INTERNAL)
    running.settle()

    back = stack.preview(program({SCHEME: "internet-facing"}, replace_address=digest))

    assert not back.ok
    assert any(f"{digest} is for another change" in error for error in back.errors)
    assert printed(back.errors) != digest


def test_a_change_in_place_passes(stack: StackUnderTest) -> None:
    assert stack.up(program({f"{SCHEME.rpartition('-')[0]}-listener-maxqps": "7"})).ok


def test_a_class_that_nobody_serves_fails_the_preview(stack: StackUnderTest) -> None:
    outcome = stack.preview(program(load_balancer_class="example.com/theirs"))

    assert not outcome.ok
    assert any("load_balancer_class: 'example.com/theirs': no controller of the cluster" in e for e in outcome.errors)
