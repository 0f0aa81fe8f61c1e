"""Rule `ccm-workload-elect-leader`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, EXEMPT, ccm, of

RULE = "ccm-workload-elect-leader"
OFF = {"args": ["run", "--leader-elect=false"]}
RECREATE = {"strategy": {"type": "Recreate"}}


def with_args(*args: Any, **options: Any) -> AnalyzedResource:
    return ccm(container={"args": ["run", *args]}, **options)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--leader-elect"],
        ["--leader-elect=true"],
        ["--leader-elect", "--v=2"],
        ["--leader-elect", "true"],
        ["--leader-elect=false", "--leader-elect=true"],
        ["--leader-elect-resource-name=false"],
    ],
)
def test_a_ccm_that_elects_a_leader_passes_which_is_the_default(pack: PolicyHost, args: list[str]) -> None:
    assert of(pack.analyze(with_args(*args)), RULE) == []


@pytest.mark.parametrize(
    "args",
    [
        ["--leader-elect=false"],
        ["--leader-elect=False"],
        ["--leader-elect=0"],
        ["--leader-elect", "false"],
        ["--leader-elect=true", "--leader-elect=false"],
        ["--leader_elect=false"],
    ],
)
def test_a_ccm_on_several_nodes_that_elects_no_leader_is_refused(pack: PolicyHost, args: list[str]) -> None:
    [finding] = pack.analyze(with_args(*args))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "mandatory", "critical")
    assert finding.message == (
        "container manager: --leader-elect is false, but a DaemonSet runs one on each of its nodes"
    )


@pytest.mark.parametrize(
    "container",
    [
        {"args": None, "command": ["/bin/ccm", "--leader-elect=false"]},
        {"args": ["--leader-elect=false"], "command": ["/bin/ccm", "--leader-elect=true"]},
        {"args": ["exec cloud-controller run '--leader-elect=false'"], "command": ["/bin/sh", "-c"]},
        {"args": ["cloud-controller run --leader-elect=false; sleep 9"], "command": ["/bin/sh", "-c"]},
        {"args": ["cloud-controller run --leader_elect=false&&x"], "command": ["/bin/sh", "-c"]},
        {"args": ["cloud-controller run --leader-elect=false>/dev/null"], "command": ["/bin/sh", "-c"]},
    ],
)
def test_flags_count_in_command_and_arguments_and_the_last_wins(pack: PolicyHost, container: dict[str, Any]) -> None:
    assert of(pack.analyze(ccm(container=container)), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Deployment", {"replicas": 2, **RECREATE}),
        ("Deployment", {"replicas": 1}),
        ("Deployment", {}),
        ("Deployment", {"replicas": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0}}}),
        ("StatefulSet", {"replicas": 3}),
    ],
)
def test_wherever_two_may_run_at_once_a_leader_is_needed(pack: PolicyHost, kind: str, spec: dict[str, Any]) -> None:
    assert of(pack.analyze(ccm(container=OFF, kind=kind, spec=spec)), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Deployment", {"replicas": 1, **RECREATE}),
        ("Deployment", {"replicas": 0}),
        ("StatefulSet", {"replicas": 1}),
        ("StatefulSet", {}),
    ],
)
def test_where_one_runs_alone_no_leader_is_needed(pack: PolicyHost, kind: str, spec: dict[str, Any]) -> None:
    assert of(pack.analyze(ccm(container=OFF, kind=kind, spec=spec)), RULE) == []


def test_only_the_ccm_among_several_containers_is_judged(pack: PolicyHost) -> None:
    sidecar = {"name": "proxy", "image": "registry.example/proxy:1.0.0", "args": ["--leader-elect=false"]}

    assert of(pack.analyze(ccm(containers=[CONTAINER, sidecar])), RULE) == []
    assert of(pack.analyze(ccm(containers=[sidecar, {**CONTAINER, **OFF}])), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    "unknown",
    [
        with_args(UNKNOWN),
        with_args("--leader-elect=true", UNKNOWN),
        ccm(container={"args": UNKNOWN}),
        ccm(container=OFF, kind="Deployment", spec={"replicas": UNKNOWN}),
        ccm(container={**OFF, "image": UNKNOWN}),
        ccm(container=OFF, name=UNKNOWN),
    ],
)
def test_an_answer_that_depends_on_an_unknown_value_is_not_evaluated(
    pack: PolicyHost, unknown: AnalyzedResource
) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]


@pytest.mark.parametrize(
    "known",
    [
        with_args(UNKNOWN, "--leader-elect=true"),
        ccm(kind="Deployment", spec={"replicas": UNKNOWN}),
        ccm(name=UNKNOWN),
        ccm(container={**OFF, "image": UNKNOWN}, name=EXEMPT),
    ],
)
def test_an_unknown_value_that_decides_nothing_is_ignored(pack: PolicyHost, known: AnalyzedResource) -> None:
    assert of(pack.analyze(known), RULE) == []


def test_a_known_last_flag_decides_after_an_unknown_one(pack: PolicyHost) -> None:
    assert of(pack.analyze(with_args(UNKNOWN, "--leader-elect=false")), RULE) == ["mandatory"]
