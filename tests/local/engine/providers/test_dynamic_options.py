"""The resource options with dynamic resources and their real server."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local.engine.providers.dynamic import DynamicProvider
from pulumi import Alias, CustomTimeouts, ResourceOptions

from local.plugins.dynamic import PACKAGE, DynamicServer

pytestmark = pytest.mark.engine

MODULE = "dynamic_options_boxes"
PROVIDER = """
import json
from pathlib import Path
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

OBJECTS = Path(__file__).parent / "objects"


class Boxes(ResourceProvider):
    def diff(self, id, olds, news):
        changed = [k for k in ("size", "kind", "ports") if olds.get(k) != news.get(k)]
        return DiffResult(changes=bool(changed), replaces=[k for k in changed if k == "kind"])

    def create(self, props):
        if props.get("kind") == "wordy":
            raise ValueError("x" * 1_000_000)
        if props.get("kind") == "nameless":
            return CreateResult(None, props)
        id = f"{props['name']}-{props.get('kind')}"
        (OBJECTS / id).write_text(json.dumps({k: v for k, v in props.items() if not k.startswith("__")}))
        return CreateResult(id, {**props, "address": f"address of {id}"})

    def read(self, id, props):
        if not (OBJECTS / id).exists():
            return ReadResult(None, {})
        return ReadResult(id, {**props, **json.loads((OBJECTS / id).read_text()), "address": f"address of {id}"})

    def update(self, id, olds, news):
        (OBJECTS / id).write_text(json.dumps({k: v for k, v in news.items() if not k.startswith("__")}))
        return UpdateResult({**news, "address": f"address of {id}"})

    def delete(self, id, props):
        (OBJECTS / id).unlink(missing_ok=True)


class Box(Resource, module="boxes", name="Box"):
    def __init__(self, name, opts=None, **props):
        super().__init__(Boxes(), name, {"name": name, "address": None, **props}, opts)
"""


class Boxes:
    """A stack of dynamic resources; each object is a file that holds its properties."""

    def __init__(self, stack: Any, make: Any) -> None:
        self.stack = stack
        self.Box = make
        self.folder: Path = stack.directory / "objects"
        self.folder.mkdir()
        self.server = self._start()

    def restart(self) -> None:
        """A new server, as for another run."""
        self.server.close()
        self.server = self._start()

    def _start(self) -> DynamicServer:
        server = DynamicServer(self.stack.directory, "test", lambda _line: None)
        self.stack.factories[PACKAGE] = lambda r: DynamicProvider(server, r.inputs, r.urn, str(r.id))
        return server

    @property
    def objects(self) -> dict[str, Any]:
        return {p.name: json.loads(p.read_text()) for p in self.folder.iterdir()}


@pytest.fixture
def boxes(stack: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Boxes]:
    # A module of its own for each test: a class is pickled by the name of its module.
    module = f"{MODULE}_{abs(hash(stack.directory))}"
    (stack.directory / f"{module}.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(str(stack.directory))
    boxes = Boxes(stack, importlib.import_module(module).Box)
    yield boxes
    boxes.server.close()


def test_a_renamed_dynamic_resource_is_the_same(boxes: Boxes) -> None:
    boxes.stack.up(lambda: boxes.Box("old", size=1, kind="a"))

    opts = ResourceOptions(aliases=[Alias(name="old")], ignore_changes=["name"])
    program = lambda: boxes.Box("new", opts, size=1, kind="a")  # noqa: E731
    assert boxes.stack.preview(program).counts == {"same": 2}
    assert boxes.stack.up(program).counts == {"same": 2}
    assert list(boxes.objects) == ["old-a"]
    assert boxes.stack.destroy().ok and boxes.objects == {}


def test_importing_a_dynamic_resource_is_a_clear_error(boxes: Boxes) -> None:
    for run in (boxes.stack.preview, boxes.stack.up):
        outcome = run(lambda: boxes.Box("box", ResourceOptions(import_="there")))
        assert not outcome.ok and "a dynamic resource cannot be imported" in outcome.errors[0]
    assert boxes.objects == {}


def test_a_long_error_of_a_dynamic_resource_is_reported(boxes: Boxes) -> None:
    outcome = boxes.stack.up(lambda: boxes.Box("box", kind="wordy"))

    assert outcome.errors[0].startswith("ValueError: xxx") and len(outcome.errors[0]) < 11_000
    assert boxes.stack.up(lambda: None).ok, "and nothing is left undecided"


def test_a_create_without_an_id_is_an_error(boxes: Boxes) -> None:
    outcome = boxes.stack.up(lambda: boxes.Box("box", kind="nameless"))

    assert not outcome.ok and "returned no id" in outcome.errors[0]
    assert "box" not in boxes.stack.resources()


def test_a_deletion_without_the_provider_class_is_a_clear_error(boxes: Boxes) -> None:
    boxes.stack.up(lambda: boxes.Box("box", size=1))
    (module,) = boxes.stack.directory.glob(f"{MODULE}*.py")
    away = module.rename(module.with_suffix(".away"))
    boxes.restart()

    outcome = boxes.stack.destroy()
    assert not outcome.ok and "no longer has the provider's class" in outcome.errors[0]

    away.rename(module)
    boxes.restart()
    assert boxes.stack.destroy().ok and boxes.objects == {}


def test_a_dynamic_resource_can_be_read(boxes: Boxes) -> None:
    (boxes.folder / "there").write_text(json.dumps({"size": 7}))

    outcome = boxes.stack.up(lambda: boxes.Box("box", ResourceOptions(id="there"), size=None))

    assert outcome.ok, outcome.errors
    assert boxes.stack.resources()["box"].outputs["size"] == 7 and boxes.stack.resources()["box"].external
    assert boxes.stack.destroy().ok and list(boxes.objects) == ["there"]


@pytest.mark.parametrize("pattern", ["*", "size"])
def test_replace_on_changes_finds_nothing_where_the_providers_diff_names_no_property(
    boxes: Boxes, pattern: str
) -> None:
    """As with the CLI; without a `diff` the engine compares, and replaces (test_recorded_options.py)."""
    opts = ResourceOptions(replace_on_changes=[pattern])
    boxes.stack.up(lambda: boxes.Box("box", opts, size=1))

    assert boxes.stack.up(lambda: boxes.Box("box", opts, size=2)).counts == {"update": 1, "same": 1}


def test_dynamic_resources_support_ignored_changes_a_trigger_and_retention(boxes: Boxes) -> None:
    def program(size: int, trigger: str, kind: str) -> Any:
        opts = ResourceOptions(
            ignore_changes=["size", "ports[*].port"],
            replacement_trigger=trigger,
            retain_on_delete=True,
            custom_timeouts=CustomTimeouts(create="5s"),
        )
        return lambda: boxes.Box("box", opts, size=size, kind=kind, ports=[{"port": size}])

    boxes.stack.up(program(1, "x", "a"))
    assert boxes.stack.up(program(2, "x", "a")).counts == {"same": 2}
    assert boxes.stack.up(program(2, "x", "b")).counts == {"replace": 1, "same": 1}
    assert set(boxes.objects) == {"box-a", "box-b"}, "the replaced one is retained"
    assert boxes.objects["box-b"]["size"] == 2, "what is made anew has the program's value"
    assert boxes.stack.up(program(2, "y", "b")).counts == {"replace": 1, "same": 1}
    assert boxes.stack.destroy().ok and set(boxes.objects) == {"box-a", "box-b"}
