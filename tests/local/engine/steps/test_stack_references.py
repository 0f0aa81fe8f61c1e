"""StackReference: the outputs of another stack in the same state folder."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest
import yaml

from local.engine.steps.stack_references import StackReferences
from local.plugins.provider import ProviderError
from local.plugins.values import PLACEHOLDER, Secret

pytestmark = pytest.mark.engine


def outputs(secret: str = "", **values: Any) -> Any:
    """A program with these outputs; `secret` becomes the one called `token`."""

    def run() -> None:
        if secret:
            pulumi.export("token", pulumi.Output.secret(secret))
        for key, value in values.items():
            pulumi.export(key, value)

    return run


def reading(name: str, seen: dict[str, Any] | None = None) -> Any:
    def run() -> None:
        other = pulumi.StackReference(name)
        pulumi.export("url", other.get_output("url"))
        pulumi.export("token", other.get_output("token"))
        pulumi.export("missing", other.get_output("missing"))
        if seen is not None:
            pulumi.export("told", pulumi.Output.from_input(told(other, seen)))

    return run


async def told(other: pulumi.StackReference, seen: dict[str, Any]) -> bool:
    for key in ("url", "token", "missing"):
        details = await other.get_output_details(key)
        seen[key] = (details.value, details.secret_value)
    return True


@pytest.mark.parametrize("name", ["base", "organization/base", "organization/test/base"])
def test_outputs_of_another_stack_are_read_and_its_secrets_stay_secret(stack: Any, name: str) -> None:
    stack.beside("base").up(outputs(url="http://base", secret="hunter2"))
    seen: dict[str, Any] = {}

    preview = stack.preview(reading(name, seen))
    assert preview.ok and preview.counts == {"create": 1, "read": 1}
    outcome = stack.up(reading(name, seen))

    assert outcome.ok and outcome.counts == preview.counts
    root = stack.resources()["test-dev"]
    assert root.outputs == {"url": "http://base", "token": Secret("hunter2"), "told": True}
    assert seen == {"url": ("http://base", None), "token": (None, "hunter2"), "missing": (None, None)}
    reference = stack.resources()[name]
    assert reference.external and reference.type == "pulumi:pulumi:StackReference" and reference.id == name
    assert reference.outputs["secretOutputNames"] == ["token"]
    assert "hunter2" not in stack.files() and "hunter2" not in repr(outcome.events)
    assert stack.up(reading(name, seen)).counts == {"read": 1, "same": 1}
    assert stack.refresh().counts == {"same": 2}
    assert stack.destroy().ok and stack.open().store.snapshot.resources == {}
    assert stack.beside("base").resources()["test-base"].outputs["url"] == "http://base"


def test_the_next_preview_sees_a_changed_output_of_another_stack(stack: Any) -> None:
    base = stack.beside("base")
    base.up(outputs(url="one"))
    stack.up(reading("base"))

    base.up(outputs(url="two"))

    assert stack.preview(reading("base")).summary.new_outputs == {"url": "two"}
    stack.up(reading("base"))
    assert stack.resources()["test-dev"].outputs == {"url": "two"}


def test_an_output_of_another_stack_can_be_an_input(stack: Any, kit: Any) -> None:
    stack.beside("base").up(outputs(url="http://base"))

    assert stack.up(lambda: kit.Thing("user", net=pulumi.StackReference("base").require_output("url"))).ok
    assert stack.cloud.objects == {"user-a": {"net": "http://base"}}


@pytest.mark.parametrize("name", ["bse", "organization/other/base", "somebody/test/base", "a/b/c/d"])
def test_a_reference_to_a_missing_stack_is_an_error_with_the_existing_ones(stack: Any, name: str) -> None:
    stack.beside("base").up(outputs(url="one"))

    for run in (stack.preview, stack.up):
        outcome = run(reading(name))
        assert not outcome.ok and repr(name) in outcome.errors[0]
        assert {"bse": "state folder: base", "organization/other/base": "project 'test'"}.get(
            name, "organization/PROJECT/STACK"
        ) in outcome.errors[0]


def test_each_referenced_stack_has_its_own_passphrase(stack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    base = stack.beside("base")
    (base.directory / "Pulumi.base.yaml").write_text(yaml.safe_dump({"config": {}}))
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    base.up(outputs(secret="hunter2", url="u"))
    assert (base.stack_dir / "passphrase").exists()
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "sample-passphrase")

    assert stack.up(reading("base")).ok
    assert stack.resources()["test-dev"].outputs["token"] == Secret("hunter2")

    (base.stack_dir / "passphrase").write_text("another")
    outcome = stack.up(reading("base"))
    assert not outcome.ok and "'base'" in outcome.errors[0] and "passphrase" in outcome.errors[0]


def test_stack_references_with_placeholder_secrets_need_no_passphrase(
    stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.beside("base").up(outputs(url="u", secret="hunter2"))
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")

    found = StackReferences(stack.stack_dir.parent, placeholder_secrets=True).read("", "base", {"name": "base"}, {})

    assert found.outputs["outputs"] == {"url": "u", "token": Secret(PLACEHOLDER)}
    with pytest.raises(ProviderError, match="there is no passphrase"):
        StackReferences(stack.stack_dir.parent).read("", "base", {"name": "base"}, {})


def test_a_stack_reference_can_only_be_read(stack: Any) -> None:
    outcome = stack.up(lambda: pulumi.CustomResource("pulumi:pulumi:StackReference", "base", {"name": "base"}))

    assert not outcome.ok and "is read-only" in outcome.errors[0]
