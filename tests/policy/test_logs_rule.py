"""Rule `ccm-workload-log-to-output`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN
from tests.policy_objects import CONTAINER, ccm, of

RULE = "ccm-workload-log-to-output"


def logging(*args: Any, **options: Any) -> AnalyzedResource:
    return ccm(container={"args": ["run", *args]}, **options)


def script(text: Any) -> AnalyzedResource:
    return ccm(container={"command": ["/bin/sh", "-c"], "args": [text]})


@pytest.mark.parametrize(
    "workload",
    [
        logging(),
        logging("--logtostderr=true", "--logging-format=json"),
        logging("--log-file="),
        logging("--log-file=/dev/stdout"),
        logging("--log-file=/var/log/ccm.log", "--alsologtostderr"),
        logging("--log-file=/var/log/ccm.log", "--also-stdout=true"),
        logging("--log-file-max-size=100"),
        script("exec cloud-controller run"),
        script("exec cloud-controller run 2>&1"),
        script("cloud-controller run | tee /var/log/ccm.log"),
        script("cloud-controller run > /dev/stderr"),
        script("nc -z host 443 > /dev/null; exec cloud-controller run"),
    ],
)
def test_a_ccm_that_logs_to_its_output_passes(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert of(pack.analyze(workload), RULE) == []


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        (logging("--log-file=/var/log/ccm.log"), "logs to a file (--log-file)"),
        (logging("--log_dir", "/var/log"), "logs to a file (--log-dir)"),
        (logging("--log-dir=/var/log", "--alsologtostderr=false"), "logs to a file (--log-dir)"),
        (logging("--logtostderr=false"), "logs to a file (--logtostderr=false)"),
        (script("exec cloud-controller run >> /var/log/ccm.log 2>&1"), "redirects its output to a file"),
        (script("cloud-controller run > /dev/null & wait"), "redirects its output to a file"),
        (
            ccm(container={"command": ["/go-runner", "--log-file=/var/log/ccm.log", "--", "/bin/ccm"]}),
            "logs to a file (--log-file)",
        ),
    ],
)
def test_a_ccm_that_logs_to_a_file_is_reported(pack: PolicyHost, workload: AnalyzedResource, problem: str) -> None:
    [finding] = pack.analyze(workload)

    assert (finding.policy, finding.level, finding.severity) == (RULE, "advisory", "medium")
    assert finding.message == f"container manager {problem}, not to its output, which the platform collects"


def test_other_containers_are_left_alone(pack: PolicyHost) -> None:
    sidecar = {"name": "proxy", "image": "registry.example/proxy:1.0.0", "args": ["--log-file=/a"]}

    assert of(pack.analyze(ccm(containers=[CONTAINER, sidecar])), RULE) == []


@pytest.mark.parametrize("unknown", [ccm(container={"args": UNKNOWN}), script(UNKNOWN)])
def test_unknown_arguments_and_scripts_are_not_evaluated(pack: PolicyHost, unknown: AnalyzedResource) -> None:
    assert of(pack.analyze(unknown), RULE) == ["not-evaluated"]


def test_an_unknown_argument_says_something_else(pack: PolicyHost) -> None:
    assert of(pack.analyze(logging(UNKNOWN)), RULE) == []
    assert of(pack.analyze(logging("--log-file=/a", UNKNOWN)), RULE) == ["advisory"]
