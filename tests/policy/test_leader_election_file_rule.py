"""Rule `ccm-config-elect-leader`."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import EXEMPT, ccm, of, resource

RULE = "ccm-config-elect-leader"
OURS, UPSTREAM = "leader-elect: false\n", "leaderElection:\n  leaderElect: false\n"
CONFIG_MAP = {"configMap": {"name": "options"}}


def reading(volume: Any = CONFIG_MAP, *args: str, mount: Any = None, **options: Any) -> AnalyzedResource:
    """A CCM that reads its options from a volume."""
    container = {
        "args": ["run", "--config=/etc/ccm/options.yaml", *args],
        "volumeMounts": [{"name": "options", "mountPath": "/etc/ccm", **(mount or {})}],
    }
    return ccm(container=container, volumes=[{"name": "options", **volume}], **options)


def file(
    text: Any = OURS, field: str = "data", kind: str = "ConfigMap", key: str = "options.yaml", **metadata: Any
) -> AnalyzedResource:
    props = {"metadata": {"name": "options", "namespace": "kube-system", **metadata}, field: {key: text}}
    return resource(f"kubernetes:core/v1:{kind}", props, "options")


@pytest.mark.parametrize(
    "text", [OURS, UPSTREAM, "generic:\n  leaderElection: {leaderElect: false}\n", "cloud: mycloud\nleader-elect: no\n"]
)
def test_a_ccm_whose_file_turns_leader_election_off_is_refused(pack: PolicyHost, text: str) -> None:
    workload = reading()

    [finding] = [each for each in pack.analyze_stack([workload, file(text)]) if each.policy == RULE]

    assert (finding.level, finding.severity, finding.urn) == ("mandatory", "critical", workload.urn)
    assert finding.message == (
        "container manager: ConfigMap options turns leader election off (options.yaml), "
        "but a DaemonSet runs one on each of its nodes"
    )


@pytest.mark.parametrize(
    "text", ["leader-elect: true\n", "cloud: mycloud\n", "leaderElection: {}\n", "", "]: not yaml"]
)
def test_a_file_that_does_not_turn_it_off_passes(pack: PolicyHost, text: str) -> None:
    assert of(pack.analyze_stack([reading(), file(text)]), RULE) == []


@pytest.mark.parametrize(
    ("workload", "source"),
    [
        (reading({"secret": {"secretName": "options"}}), file(kind="Secret", field="stringData")),
        (
            reading({"secret": {"secretName": "options"}}),
            file(base64.b64encode(OURS.encode()).decode(), kind="Secret"),
        ),
        (reading({"projected": {"sources": [CONFIG_MAP, {"secret": {"name": "other"}}]}}), file()),
        (reading({"configMap": {"name": "options", "items": [{"key": "a", "path": "options.yaml"}]}}), file(key="a")),
        (reading(mount={"mountPath": "/etc/ccm/options.yaml", "subPath": "options.yaml"}), file()),
    ],
)
def test_the_file_is_found_wherever_it_is_mounted_from(
    pack: PolicyHost, workload: AnalyzedResource, source: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([workload, source]), RULE) == ["mandatory"]


@pytest.mark.parametrize(
    ("workload", "source"),
    [
        (reading(CONFIG_MAP, "--leader-elect=true"), file()),
        (reading(kind="StatefulSet"), file()),
        (reading(), file(name="others")),
        (reading(), file(namespace="default")),
        (reading(), file(key="other.yaml")),
        (reading({"hostPath": {"path": "/etc/ccm"}}), file()),
        (ccm(), file()),
        (reading(name=EXEMPT), file()),
    ],
    ids=["the flag wins", "one runs", "name", "namespace", "key", "machine", "no file", "exempt"],
)
def test_a_file_that_does_not_matter_to_it_passes(
    pack: PolicyHost, workload: AnalyzedResource, source: AnalyzedResource
) -> None:
    assert of(pack.analyze_stack([workload, source]), RULE) == []


def test_an_unknown_file_is_not_evaluated_where_a_ccm_reads_it(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([reading(), file(UNKNOWN)]), RULE) == ["not-evaluated"]
    assert of(pack.analyze_stack([ccm(), file(UNKNOWN)]), RULE) == []
