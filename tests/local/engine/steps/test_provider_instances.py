"""The default provider instance, when it cannot be registered."""

from __future__ import annotations

from typing import Any

import pytest

from local.engine.policies.host import Finding, PolicyHost
from local.engine.policies.resources import AnalyzedResource
from local.plugins.urn import is_provider

pytestmark = pytest.mark.engine


class NoProviders:
    """A policy pack that forbids every provider instance."""

    name, version = "strict", "1.0.0"

    def remediate(self, resource: AnalyzedResource) -> tuple[dict[str, Any], list[Any]]:
        return dict(resource.properties), []

    def analyze(self, resource: AnalyzedResource) -> list[Finding]:
        found = Finding("none", self.name, self.version, "mandatory", "not here", resource.urn, "No providers.")
        return [found] if is_provider(resource.type) else []

    def close(self) -> None:
        pass


@pytest.mark.parametrize("further", [False, True], ids=["stops", "continues on errors"])
def test_a_forbidden_default_provider_is_reported_once_for_all_its_resources(
    stack: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, further: bool
) -> None:
    monkeypatch.setattr(PolicyHost, "start", lambda *_args, **_options: NoProviders())

    outcome = stack.up(
        lambda: [kit.Thing(name) for name in "abcdef"],
        policy_packs=[(stack.directory, None)],
        continue_on_error=further,
    )

    assert not outcome.ok and outcome.errors == ["blocked by a mandatory policy"]
    assert stack.cloud.calls == []
