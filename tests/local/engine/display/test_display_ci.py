"""CI systems' markup of the lines: folding sections, errors at the source, and no commands from outside."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.engine.display.ci import GitHubLog, GitLabLog, Log, PlainLog, log_of
from local.engine.display.lines import QUIET_SECONDS, Lines, Wanted
from local.engine.display.text import Output, line, neutral
from local.engine.events import Diagnostic, Event, PolicyEvent, Prelude, StepDone, StepFailed, StepInfo, StepStarted
from local.engine.policies.host import Finding
from local.engine.steps.planner import Op
from tests.local.engine.shown_events import creating, resource, step, summary

PROJECT = Path("/checkout/infra")
GITHUB = GitHubLog(colour=False, project=PROJECT, workspace="/checkout")


def shown(log: Log, *events: Event, **wanted: Any) -> list[str]:
    out = io.StringIO()
    display = Lines(Output(out), log, Wanted(**wanted))
    for event in events:
        display(event)
    display.close()
    return out.getvalue().split("\n")[:-1]


def update(name: str) -> StepInfo:
    old, new = resource(name, inputs={"size": 1}), resource(name, inputs={"size": 2})
    return step(Op.UPDATE, old, new)


def failing(name: str, **fields: Any) -> StepInfo:
    return creating(name, source_position="project:///sites/main.py#7", **fields)


def test_github_logs_fold_a_difference_under_its_step() -> None:
    assert shown(GITHUB, Prelude("preview", "dev", {}), StepDone(update("web"), True)) == [
        "Previewing update (dev):",
        "::group::~  cloud:m:Thing web update",
        "      ~ size: 1 => 2",
        "::endgroup::",
    ]


def test_github_logs_fold_the_final_sections_but_not_the_counts() -> None:
    lines = shown(GITHUB, summary(new_outputs={"url": "x"}, changes={Op.CREATE: 1}, policy_packs={"pack": "1.0"}))
    assert lines == [
        *["", "::group::Policies:", "    pack@v1.0: passed", "::endgroup::"],
        *["", "::group::Outputs:", '  + url: "x"', "::endgroup::"],
        *["", "Resources:", "    + 1 to create", "", "Duration: 1.0s"],
    ]


def test_github_logs_mark_an_error_at_the_line_that_registers_the_resource() -> None:
    web = failing("web")
    error = Diagnostic("error", "quota: 100%\nask for more", web.urn)
    lines = shown(GITHUB, StepStarted(web, False), StepFailed(web), error, summary(planning=False, failed=True))
    assert "::error file=infra/sites/main.py,line=7,title=web::quota: 100%25%0Aask for more" in lines


def test_an_error_before_any_step_has_its_position() -> None:
    error = Diagnostic("error", "size: too large", resource("web").urn, position="project:///main.py#3")
    assert "::error file=infra/main.py,line=3,title=web::size: too large" in shown(GITHUB, error, summary(failed=True))


def test_a_violated_policy_is_marked_where_the_resource_is_registered() -> None:
    web = failing("web")
    finding = Finding("no-wildcards", "pack", "1.0", "mandatory", "verbs: *", web.urn, "No wildcards.")
    advice = Finding("labels", "pack", "1.0", "advisory", "no labels", web.urn, "Labels.")
    lines = shown(GITHUB, StepStarted(web, True), PolicyEvent(finding), PolicyEvent(advice), summary(failed=True))
    [marked] = [text for text in lines if text.startswith("::error")]
    assert marked == "::error file=infra/sites/main.py,line=7,title=no-wildcards%3A web::No wildcards.%0Averbs: *"


def test_one_error_of_many_resources_is_marked_once() -> None:
    errors = [Diagnostic("error", "no answer", resource(name).urn) for name in "abc"]
    assert sum(text.startswith("::error") for text in shown(GITHUB, *errors, summary(failed=True))) == 1


def test_a_project_outside_of_the_checkout_is_marked_without_a_file() -> None:
    log = GitHubLog(colour=False, project=Path("/elsewhere"), workspace="/checkout")
    assert log.error("web", "bad", "project:///main.py#3") == ["::error title=web::bad"]


def test_gitlab_sections_begin_and_end_with_a_unique_name() -> None:
    log = GitLabLog(colour=False, now=lambda: 1700000000.5)
    lines = shown(log, summary(new_outputs={"url": "x"}, policy_packs={"pack": ""}))
    text = "\n".join(lines)
    starts = re.findall(r"section_start:1700000000:([a-z0-9_]+)\[collapsed=true\]\r\x1b\[0K(\w+):", text)
    assert starts == [("policies_1", "Policies"), ("outputs_2", "Outputs")]
    assert re.findall(r"\x1b\[0Ksection_end:1700000000:(\w+)\r\x1b\[0K", text) == ["policies_1", "outputs_2"]


def test_gitlab_logs_do_not_fold_problems() -> None:
    log = GitLabLog(colour=False)
    text = "\n".join(shown(log, Diagnostic("error", "one\ntwo", resource("web").urn), summary(failed=True)))
    assert re.search(r"section_start:\d+:diagnostics_1\r", text)


COMMANDS = (
    "::set-output name=x::y",
    "  ::add-mask::secret",
    "\u00a0::stop-commands::x",
    "##[add-path]/tmp",
    "text ##[error]x",
    "\x1b[0Ksection_end:1:policies_1\r\x1b[0K",
    "\r::warning::x",
    "a\n::error::x",
)


@pytest.mark.parametrize("said", COMMANDS)
def test_output_of_programs_and_providers_is_not_a_workflow_command(
    said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    web = creating("web", inputs={"text": said})
    events: list[Event] = [
        Prelude("up", "dev", {}),
        Diagnostic("info", said),
        Diagnostic("error", said, web.urn),
        StepDone(web, False),
        StepDone(creating(said), False),
        summary(planning=False, new_outputs={said: said}, failed=False),
    ]
    ours = re.compile(r"::(group|endgroup|error)::|::error title=")
    Lines(Output(io.StringIO()), GITHUB).close(f"it is\n{said}")
    for text in [*shown(GITHUB, *events, diff=True), *capsys.readouterr().err.split("\n")]:
        assert ours.match(text) or not (text.lstrip().startswith("::") or "##[" in text)
    for text in shown(GitLabLog(colour=False), *events, diff=True):
        assert "\r" not in re.sub(r"\x1b\[0Ksection_(start|end):\d+:\w+(\[collapsed=true\])?\r\x1b\[0K", "", text)


@given(st.text())
def test_shown_text_never_acts_on_a_terminal(text: str) -> None:
    said = neutral(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u202e\u2066\u200b" for c in said)
    assert neutral(said) == said


def test_the_environment_selects_the_log_format() -> None:
    def kind(**environment: str) -> type:
        return type(log_of(environment, colour=False, project=PROJECT))

    assert kind(GITHUB_ACTIONS="true") is GitHubLog and kind(GITLAB_CI="true") is GitLabLog
    assert kind() is PlainLog and kind(GITHUB_ACTIONS="false") is PlainLog


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_progress_of_a_step_is_reported_at_once_and_then_at_intervals() -> None:
    out, clock, web = io.StringIO(), Clock(), creating("web")
    display = Lines(Output(out), PlainLog(colour=False), now=clock)

    def reported() -> list[str]:
        lines = out.getvalue().splitlines()
        out.seek(0)
        out.truncate()
        return lines

    display(Prelude("up", "dev", {}))
    display(StepStarted(web, False))
    reported()
    for second in range(1, 20):
        clock.now = second
        display(Diagnostic("info", f"waiting for {second} of 20 pods", web.urn, ephemeral=True))
        display.report_running()
    assert reported() == ["      cloud:m:Thing web: waiting for 1 of 20 pods"]

    clock.now = 1 + QUIET_SECONDS
    display.report_running()
    display.report_running()
    assert reported() == [" +  cloud:m:Thing web still creating (31s): waiting for 19 of 20 pods"]

    display(StepDone(web, False, 32))
    clock.now = 100
    display.report_running()
    assert reported() == [" +  cloud:m:Thing web created (32.00s)"]
    display.close()


def test_the_first_of_many_running_steps_are_named() -> None:
    out, clock = io.StringIO(), Clock()
    display = Lines(Output(out), PlainLog(colour=False), now=clock)
    for number in range(30):
        display(StepStarted(creating(f"node-{number}"), False))
    clock.now = QUIET_SECONDS
    display.report_running()
    display.close()
    reported = out.getvalue().splitlines()[30:]
    assert len(reported) == 11 and reported[-1] == "    and 20 more"


def test_suppressed_output_is_not_shown() -> None:
    same = StepDone(step(Op.SAME, resource("quiet"), resource("quiet")), True)
    end = summary(new_outputs={"url": "x"})
    assert not any("quiet" in text or "url" in text for text in shown(PlainLog(colour=False), same, end, outputs=False))
    assert any("quiet" in text for text in shown(PlainLog(colour=False), same, end, sames=True))


def test_characters_missing_in_the_streams_encoding_are_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Output(stream).write("naïve ✓\n")
    assert raw.getvalue() == b"na\\xefve \\u2713\n"


def test_colours_in_foreign_text_are_dropped() -> None:
    assert neutral("\x1b[1;31mred\x1b[0m\ttext") == "red    text"
    assert PlainLog(colour=True).text(line("\x1b[31mx")) == "x"
