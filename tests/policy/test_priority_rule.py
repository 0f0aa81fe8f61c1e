"""Rule `ccm-workload-set-priority`."""

from __future__ import annotations

import pytest

from cloud_stacks.policies.host import PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import ccm, of, patch, start

RULE = "ccm-workload-set-priority"


@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical", "platform-critical"])
def test_a_critical_priority_class_or_one_of_the_settings_passes(pack: PolicyHost, name: str) -> None:
    assert of(pack.analyze(ccm(priorityClassName=name)), RULE) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [(None, "no priority class"), ("", "no priority class"), ("low", "the priority class is not critical")],
)
def test_a_ccm_without_a_critical_class_is_reported(pack: PolicyHost, name: str | None, message: str) -> None:
    [finding] = pack.analyze(ccm(priorityClassName=name))

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == (f"{message}; allowed: system-cluster-critical, system-node-critical, platform-critical")


def test_a_patch_may_leave_the_class_to_others_but_not_set_another(pack: PolicyHost) -> None:
    assert of(pack.analyze(patch(ccm(priorityClassName=None))), RULE) == []
    assert of(pack.analyze(patch(ccm(priorityClassName="low"))), RULE) == ["advisory"]


@pytest.mark.integration
def test_at_level_remediate_the_class_is_set_in_kube_system_where_none_is() -> None:
    elsewhere = ccm(priorityClassName=None)
    elsewhere.properties["metadata"] = {"name": "ccm", "namespace": "clouds"}
    host = start({RULE: "remediate"})
    try:
        done = [host.remediate(each) for each in (ccm(priorityClassName=None), ccm(priorityClassName="low"), elsewhere)]
        left = of(host.analyze(elsewhere), RULE)
    finally:
        host.close()

    (mended, [(finding, _)]), *others = done
    assert (finding.policy, mended) == (RULE, ccm().properties)
    assert others == [(ccm(priorityClassName="low").properties, []), (elsewhere.properties, [])]
    assert left == ["mandatory"]


def test_an_unknown_priority_class_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm(priorityClassName=UNKNOWN)), RULE) == ["not-evaluated"]


def test_a_critical_priority_class_passes_even_if_the_workload_is_unknown(pack: PolicyHost) -> None:
    assert of(pack.analyze(ccm(container={"image": UNKNOWN})), RULE) == []
    assert of(pack.analyze(ccm(container={"image": UNKNOWN}, priorityClassName=None)), RULE) == ["not-evaluated"]
