"""The command line `cloud-stacks`: `diff`, `preview`, `report` and `new`."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TextIO

from cloud_controller.cli.parser import Parser
from cloud_stacks import new, plans
from cloud_stacks.checkouts import CheckoutError, checked_out, merge_base, prefix, working_folder
from cloud_stacks.comparison import StackReport, report
from cloud_stacks.outcome import NotEvents, of_text
from cloud_stacks.plans import Choice
from cloud_stacks.policies.host import PolicyError
from cloud_stacks.report import html, junit, markdown, sarif, text
from cloud_stacks.report.page import page
from cloud_stacks.report.words import safe, safe_json
from local import termination
from local.errors import BuildError
from local.pulumi.project import ProjectError
from local.pulumi.rehearsal import RehearsalError
from local.pulumi.toolchain import find

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 8
WHOLE: Final = "report.md"
_ERRORS: Final = (
    *(BuildError, CheckoutError, NotEvents, PolicyError, ProjectError, RehearsalError),
    *(ValueError, OSError),
)
_EPILOG: Final = """\
files in --out DIR:
  comment.md     a comment on a pull request, under 64,000 characters
  report.md      the same with everything; report.html is a page of its own
  report.sarif   findings, address changes and errors, with the program's lines
  report.xml     JUnit
  report.json    all of it as data

exit codes:
  0  every stack can be planned
  1  a stack cannot be planned, or violates a mandatory policy that it did not violate before
  2  invalid arguments, or nothing could be compared
  8  interrupted"""


def command() -> int:
    """Run as a process: what ends it also ends the processes that it started, and removes the worktrees."""
    # A run is short and keeps most of what it makes.
    gc.set_threshold(100_000, 20, 20)
    termination.heed()
    try:
        return main()
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED


def main(arguments: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run a command; returns its exit code."""
    parsed = _parser().parse_args(arguments)
    stream = out or sys.stdout
    try:
        if parsed.command == "new":
            stream.write("".join(f"{name}\n" for name in new.make(Path(parsed.folder).resolve())))
            return OK
        title, reports = _COMMANDS[parsed.command](parsed)
    except _ERRORS as error:
        print("\n".join(safe(line) for line in f"error: {error}".splitlines()), file=sys.stderr)
        return USAGE
    if parsed.out:
        folder = parsed.folder if parsed.folder is not None else prefix(Path(getattr(parsed, "cwd", ".")))
        write(Path(parsed.out), title, reports, parsed.key, folder)
    stream.write(_as_json(reports) if parsed.json else text.render(page(title, reports)))
    return FAILED if any(each.failed for each in reports) else OK


def write(folder: Path, title: str, reports: Sequence[StackReport], key: str, project: str = "") -> None:
    """Write every form of a report. `project`: its folder in the repository."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = page(title, reports)
    for name, content in {
        "comment.md": markdown.comment(title, reports, key, WHOLE),
        WHOLE: markdown.render(whole),
        "report.html": html.render(title, whole),
        "report.sarif": sarif.render(reports, project),
        "report.xml": junit.render(reports),
        "report.json": _as_json(reports),
    }.items():
        (folder / name).write_text(content, encoding="utf-8")


def _diff(parsed: argparse.Namespace) -> tuple[str, list[StackReport]]:
    project = Path(parsed.cwd).resolve()
    with ExitStack() as folders:
        base = merge_base(project, parsed.base, parsed.head or "HEAD")
        before = folders.enter_context(checked_out(project, base, _tell))
        after = (
            folders.enter_context(checked_out(project, parsed.head, _tell)) if parsed.head else working_folder(project)
        )
        return "What this change does to the stacks", plans.compare(find(_tell), before, after, _choice(parsed))


def _preview(parsed: argparse.Namespace) -> tuple[str, list[StackReport]]:
    project = Path(parsed.cwd).resolve()
    return "What the stacks are", plans.preview(find(_tell), working_folder(project), _choice(parsed))


def _report(parsed: argparse.Namespace) -> tuple[str, list[StackReport]]:
    reports = []
    for name in parsed.files:
        source = Path(name)
        try:
            outcome = of_text(sys.stdin.read() if name == "-" else source.read_text(encoding="utf-8"))
        except ValueError as error:
            raise NotEvents(f"{name}: {error}") from None
        reports.append(report(outcome, stack=outcome.stack or source.stem))
    return parsed.title, reports


_COMMANDS: Final = {"diff": _diff, "preview": _preview, "report": _report}


def _choice(parsed: argparse.Namespace) -> Choice:
    return Choice(tuple(parsed.stack), tuple(parsed.policy_pack))


def _as_json(reports: Sequence[StackReport]) -> str:
    found: list[dict[str, Any]] = [{**asdict(each), "failed": each.failed} for each in reports]
    return safe_json({"stacks": found})


def _tell(message: str) -> None:
    print(safe(message), file=sys.stderr, flush=True)


def _parser() -> Parser:
    parser = Parser(prog="cloud-stacks", description="What a commit does to the stacks of a Pulumi program.")
    commands: Any = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    diff = _command(commands, "diff", "compare two commits, without state, secrets and network", planned=True)
    diff.add_argument("--base", required=True, metavar="REF", help="the branch or commit to compare with")
    diff.add_argument("--head", metavar="REF", help="the commit to judge (default: the folder as it is)")
    _command(commands, "preview", "plan the stacks as if nothing existed, with their policies", planned=True)
    report = _command(commands, "report", "render a plan that Pulumi's CLI wrote as JSON")
    report.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="`pulumi preview --json`, or an event log of the CLI (`--event-log FILE`, with PULUMI_DEBUG_COMMANDS=1 in "
        "its environment), which has the policy findings; -: standard input",
    )
    start = commands.add_parser(
        "new",
        help="make a repository with a program, a stack, policies, a test and a workflow",
        description="Make a repository with a program, a stack, policies, a test and a workflow.",
    )
    start.add_argument("folder", metavar="DIR", help="an empty or new folder; its name is the project's")
    report.add_argument("--title", default="Plan", help="the report's heading (default: %(default)s)")
    return parser


def _command(commands: Any, name: str, about: str, *, planned: bool = False) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=f"{about.capitalize()}.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if planned:
        command.add_argument("--cwd", "-C", metavar="DIR", default=".", help="the project's folder")
        command.add_argument(
            "--stack", "-s", action="append", default=[], metavar="NAME", help="only this stack; may be repeated"
        )
        command.add_argument(
            "--policy-pack",
            action="append",
            default=[],
            metavar="DIR",
            help="a policy pack's folder in the project; may be repeated (default: policy, where it is one)",
        )
    command.add_argument("--out", metavar="DIR", help="write the report's files here")
    command.add_argument("--key", default=name, help="marks the comment that later runs change (default: %(default)s)")
    command.add_argument(
        "--folder", metavar="DIR", help="the project's folder in the repository, for SARIF (default: git knows)"
    )
    command.add_argument("--json", action="store_true", help="print the report as JSON")
    return command
