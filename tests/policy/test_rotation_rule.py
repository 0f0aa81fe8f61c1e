"""Rule `ccm-credential-set-expiry`."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from local.plugins.values import Secret as Marked
from tests.policy_objects import EXEMPT, ccm, of, resource

RULE = "ccm-credential-set-expiry"
HUSH = "hUsh4Ever"
CONFIG = f"[Global]\nendpoint = https://api.mycloud.internal\ntoken = {HUSH}\ncluster-id = c-1\n"
EXPIRES = "cloud-controller/credential-expires"


def in_days(days: int) -> str:
    return str(datetime.now(UTC).date() + timedelta(days=days))


def secret(expires: Any = None, texts: Any = None, name: str = "config", **fields: Any) -> AnalyzedResource:
    metadata: PropertyMap = {"name": name, "namespace": "kube-system"}
    if expires is not None:
        metadata["annotations"] = {EXPIRES: expires}
    texts = {"cloud.conf": CONFIG} if texts is None else texts
    return resource("kubernetes:core/v1:Secret", {"metadata": metadata, "stringData": texts, **fields}, name)


def reading(name: str = "config", **pod: Any) -> AnalyzedResource:
    return ccm(**{"volumes": [{"name": "v", "secret": {"secretName": name}}], **pod})


MISSING = f"holds a credential of the CCM, and no annotation {EXPIRES} says when it expires (YYYY-MM-DD)"


@pytest.mark.parametrize(
    ("expires", "said"),
    [
        (None, MISSING),
        ("soon", f"annotation {EXPIRES} is not a date (YYYY-MM-DD)"),
        (in_days(-2), f"the CCM's credential expired on {in_days(-2)}: replace it"),
        (in_days(95), f"the CCM's credential expires on {in_days(95)}, which is more than 90 days ahead"),
    ],
    ids=["missing", "no date", "expired", "too late"],
)
def test_a_credential_that_is_not_replaced_in_time_is_reported(pack: PolicyHost, expires: Any, said: str) -> None:
    stored = secret(expires)

    [finding] = [each for each in pack.analyze_stack([reading(), stored]) if each.policy == RULE]

    assert (finding.urn, finding.level, finding.severity) == (stored.urn, "advisory", "medium")
    assert said in finding.message
    assert HUSH not in finding.message


@pytest.mark.parametrize(
    "workload",
    [
        reading(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "config"}}]}}]),
        reading(volumes=[], container={"envFrom": [{"secretRef": {"name": "config"}}]}),
        reading(
            volumes=[],
            container={"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "config", "key": "a"}}}]},
        ),
        reading(volumes=[], initContainers=[{"name": "a", "envFrom": [{"secretRef": {"name": "config"}}]}]),
    ],
    ids=["projected", "envFrom", "env", "init container"],
)
def test_a_ccm_reads_credentials_in_every_way_a_pod_can(pack: PolicyHost, workload: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([workload, secret()]), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "content",
    [
        {"texts": {"token": HUSH}},
        {"texts": {"cloud.conf": CONFIG.replace(HUSH, '"[placeholder]"')}},
        {"texts": {}, "data": {"cloud.conf": base64.b64encode(CONFIG.encode()).decode()}},
        {"texts": {}, "data": Marked({"cloud.conf": base64.b64encode(CONFIG.encode()).decode()})},
    ],
    ids=["one entry", "a placeholder of a run without secrets", "data", "marked as secret"],
)
def test_a_credential_is_found_in_every_form_of_a_secret(pack: PolicyHost, content: Any) -> None:
    assert of(pack.analyze_stack([reading(), secret(**content)]), RULE) == ["advisory"]


@pytest.mark.parametrize(
    "resources",
    [
        [reading(), secret(in_days(89))],
        [reading("other"), secret()],
        [reading(), secret(texts={"cloud.conf": "[Global]\nKubernetesClusterID = a\n"})],
        [reading(), secret(texts={"tls.key": f"password = {HUSH}\n"}, type="kubernetes.io/tls")],
        [reading(EXEMPT), secret(name=EXEMPT)],
        [resource("aws:eks/cluster:Cluster", {}, "prod"), reading(), secret()],
        [reading(), secret(in_days(30), texts={"cloud.conf": UNKNOWN})],
    ],
    ids=["in time", "not the CCM's", "no credential", "a certificate", "exempt", "roles", "unknown text"],
)
def test_credentials_that_are_replaced_in_time_pass(pack: PolicyHost, resources: Any) -> None:
    assert of(pack.analyze_stack(resources), RULE) == []


def test_a_credential_may_be_used_on_its_last_day(pack: PolicyHost) -> None:
    last_day = ""
    while last_day != in_days(0):  # Again if it became midnight meanwhile.
        last_day = in_days(0)
        found = of(pack.analyze_stack([reading(), secret(last_day)]), RULE)

    assert found == []


@pytest.mark.parametrize(
    "stored",
    [secret(UNKNOWN), secret(texts={"cloud.conf": UNKNOWN})],
    ids=["the day", "whether there is a credential without a day"],
)
def test_an_unknown_secret_that_may_be_wrong_is_not_evaluated(pack: PolicyHost, stored: AnalyzedResource) -> None:
    assert of(pack.analyze_stack([reading(), stored]), RULE) == ["not-evaluated"]
