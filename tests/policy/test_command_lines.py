"""How rules read a container's command line (`policy/command_lines.py`), by the one on leader election."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import ccm, of

LEADS = "ccm-workload-elect-leader"


@pytest.mark.parametrize("variable", ["$(ELECT)", "${ELECT}", "$ELECT"])
def test_a_flag_gets_the_value_of_its_variable(pack: PolicyHost, variable: str) -> None:
    args = [f"--leader-elect={variable}"]

    off, on, elsewhere = (
        of(pack.analyze(ccm(container={"args": args, "env": [{"name": "ELECT", **value}]})), LEADS)
        for value in ({"value": "false"}, {"value": "true"}, {"valueFrom": {"configMapKeyRef": {"name": "a"}}})
    )

    assert (off, on, elsewhere) == (["mandatory"], [], [])


def test_a_variable_may_hold_whole_flags(pack: PolicyHost) -> None:
    env = [{"name": "FLAGS", "value": "--v=2 --leader-elect=false"}]
    shell = {"command": ["sh", "-c", "exec cloud-controller run $FLAGS"], "args": []}

    for run in ({"args": ["run", "$(FLAGS)"]}, shell):
        assert of(pack.analyze(ccm(container={"env": env, **run})), LEADS) == ["mandatory"]
    assert of(pack.analyze(ccm(container={"env": [{"name": "FLAGS", "value": UNKNOWN}], **shell})), LEADS) == [
        "not-evaluated"
    ]


@pytest.mark.parametrize("name", [["--cluster-name", "$(CLUSTER)"], ["--cluster-name=$(CLUSTER)"]])
def test_the_unknown_value_of_another_flag_decides_nothing(pack: PolicyHost, name: list[str]) -> None:
    words = ["run", "--leader-elect=true", *name]
    shell = {"command": ["sh", "-c", " ".join(["exec cloud-controller", *words])], "args": []}
    env = [{"name": "CLUSTER", "value": UNKNOWN}]

    for run in ({"args": words}, shell):
        assert of(pack.analyze(ccm(container={"env": env, **run})), LEADS) == []


def test_flags_in_the_variable_after_a_flag_without_value_are_found(pack: PolicyHost) -> None:
    env = [{"name": "FLAGS", "value": "--v=2 --leader-elect=false"}]

    assert of(pack.analyze(ccm(container={"env": env, "args": ["--dry-run", "$(FLAGS)"]})), LEADS) == ["mandatory"]
    unknown = {"env": [{"name": "FLAGS", "value": UNKNOWN}], "args": ["--leader-elect=true", "--", "$(FLAGS)"]}
    assert of(pack.analyze(ccm(container=unknown)), LEADS) == ["not-evaluated"]


def test_a_flag_after_an_unknown_variable_in_a_script_is_found(pack: PolicyHost) -> None:
    script = {"command": ["sh", "-c", "exec cloud-controller run $FLAGS --leader-elect=false"], "args": []}
    env = [{"name": "FLAGS", "value": UNKNOWN}]

    assert of(pack.analyze(ccm(container={"env": env, **script})), LEADS) == ["mandatory"]
