"""The tests of the CLI are tested by faults: each of them fails one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.plugins.kubernetes.provider import KubernetesProvider
from local.plugins.provider import DeleteRequest, DiffKind, DiffRequest, DiffResult, PropertyDiff, ReadResult
from local.plugins.values import PropertyMap
from tests.local.plugins import test_plugins_with_pulumi as plugins
from tests.local.plugins.kubernetes import test_kubernetes_with_pulumi as with_pulumi
from tests.local.plugins.kubernetes.cluster_with_cli import Cluster

pytestmark = [pytest.mark.cli, pytest.mark.control_plane]


class ReadsOtherInputs(KubernetesProvider):
    def read(self, urn: str, id: str, inputs: PropertyMap, outputs: PropertyMap) -> ReadResult:
        found = super().read(urn, id, inputs, outputs)
        return replace(found, inputs={**(found.inputs or {}), "data": {"a": "another"}})


class SkipsADeletion(KubernetesProvider):
    def delete(self, request: DeleteRequest) -> None:
        del request


class ChangesWhatIsUnchanged(KubernetesProvider):
    def diff(self, request: DiffRequest) -> DiffResult:
        return replace(super().diff(request), changed=True, detailed={"data": PropertyDiff(DiffKind.UPDATE)})


@pytest.mark.parametrize(
    ("provider", "found_by"),
    [
        (ReadsOtherInputs, with_pulumi.test_drift_shows_in_one_refresh_and_the_next_up_corrects_it),
        (SkipsADeletion, with_pulumi.test_an_object_that_exists_is_imported_and_then_managed),
        (ChangesWhatIsUnchanged, with_pulumi.test_drift_shows_in_one_refresh_and_the_next_up_corrects_it),
    ],
)
def test_a_fault_of_a_provider_is_found(cluster: Cluster, provider: Any, found_by: Callable[[Cluster], None]) -> None:
    cluster.stack.factories["kubernetes"] = provider

    with pytest.raises(AssertionError) as found:
        found_by(cluster)

    print(f"{found_by.__name__}: {found.value}")


def test_a_missing_finding_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found_by = plugins.test_a_violated_rule_is_told_at_its_level_and_stops_the_run_if_mandatory
    monkeypatch.setattr(plugins, "SERVICE", plugins.SERVICE.replace("LoadBalancer", "ClusterIP"))

    with pytest.raises(AssertionError) as found:
        found_by(tmp_path, "mandatory", "preview")

    print(f"{found_by.__name__}: {found.value}")
