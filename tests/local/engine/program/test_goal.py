"""Goals read from registrations."""

from __future__ import annotations

from pathlib import Path

import pytest
from pulumi.runtime.proto import resource_pb2

from local.engine.program import goal
from local.engine.program.goal import goal_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 0), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400), ("500ms", 0.5)]
)
def test_a_duration_is_read_as_go_writes_it(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["5", "m", "5x", "ten minutes"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid duration"):
        seconds_of(text)


def test_an_unset_option_differs_from_a_false_one() -> None:
    unset = goal_of(resource_pb2.RegisterResourceRequest(type="t", name="n"), "/project")
    false = goal_of(
        resource_pb2.RegisterResourceRequest(type="t", name="n", protect=False, retainOnDelete=False), "/project"
    )
    assert (unset.protect, unset.retain_on_delete) == (None, None)
    assert (false.protect, false.retain_on_delete) == (False, False)


def test_a_position_is_relative_to_the_projects_folder_and_omitted_outside_of_it() -> None:
    def position(uri: str) -> str:
        request = resource_pb2.RegisterResourceRequest(type="t", name="n")
        request.sourcePosition.uri, request.sourcePosition.line = uri, 7
        template = goal_of(request, "/home/me/project").template
        assert template is not None
        return template.source_position

    assert position("file:///home/me/project/a%20b.py") == "project:///a b.py#7"
    assert position("file:///usr/lib/python/x.py") == ""


def test_only_the_projects_own_frames_of_a_stack_trace_are_kept() -> None:
    request = resource_pb2.RegisterResourceRequest(type="t", name="n")
    for uri, line in [
        ("file:///home/me/project/parts.py", 3),
        ("file:///home/me/project/__main__.py", 7),
        ("", 0),
        ("file:///home/me/project/.venv/lib/python3/site-packages/pulumi/runtime/stack.py", 235),
        ("file:///usr/lib/python3/asyncio/events.py", 80),
    ]:
        frame = request.stackTrace.frames.add()
        frame.pc.uri, frame.pc.line = uri, line

    template = goal_of(request, "/home/me/project").template

    assert template is not None
    assert template.stack_trace == ("project:///parts.py#3", "project:///__main__.py#7")


def test_the_engines_own_frames_are_not_the_programs() -> None:
    request = resource_pb2.RegisterResourceRequest(type="t", name="n")
    project = Path(goal.__file__).parents[3]
    for path in (project / "__main__.py", Path(goal.__file__).parent / "runner.py"):
        request.stackTrace.frames.add().pc.uri = path.as_uri()

    template = goal_of(request, str(project)).template

    assert template is not None
    assert template.stack_trace == ("project:///__main__.py#0",)
