"""Plans all stacks of one or two commits, several at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import policy
from cloud_stacks.checkouts import working_folder
from cloud_stacks.comparison import StackReport, report
from cloud_stacks.offline import Checkout, Plan, plan
from cloud_stacks.outcome import Outcome, Problem, of_engine
from local.engine.cli import LocalProviders
from local.engine.events import Event
from local.engine.operations import Options
from local.engine.operations import preview as run_preview
from cloud_stacks.policies.host import PACK_FILE
from local.engine.stack.project import ProjectError, load_project, stacks_in
from local.engine.stack.secrets import SecretsError
from local.engine.stack.session import Request

POLICY: Final = "policy"
"""The folder of a project's policy pack, where no other is given."""
Pack = tuple[Path, Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which stacks, all if none is named, and which policy packs, by their folders in the project."""

    stacks: Sequence[str] = ()
    packs: Sequence[str] = ()


def stacks_of(checkout: Checkout) -> list[str]:
    """The stacks that have a file. Raises ProjectError."""
    if not (checkout.project / "Pulumi.yaml").exists():
        return []
    return stacks_in(load_project(checkout.project).stack_config_dir)


def compare(base: Checkout, head: Checkout, choice: Choice) -> list[StackReport]:
    """What the head does to each stack as the base would leave it. Raises ProjectError, ValueError, OSError."""
    of_base, of_head = stacks_of(base), stacks_of(head)

    def one(stack: str) -> StackReport:
        if stack not in of_head:
            gone = "the stack file is deleted: nobody manages its resources any more, which stay as they are"
            return StackReport(stack, problems=(Problem("warning", gone),))
        before, left = _outcome(base, stack, choice) if stack in of_base else (None, None)
        if before is not None and _is_broken(before):
            after, _ = _outcome(head, stack, choice)
            alone = Problem("warning", "the base cannot be planned, so every resource counts as new")
            return report(replace(after, problems=(*after.problems, alone)), before, stack)
        after, _ = _outcome(head, stack, choice, left)
        return report(after, before, stack)

    return _each(_chosen({*of_base, *of_head}, choice), one)


def preview(checkout: Checkout, choice: Choice) -> list[StackReport]:
    """The plan of each stack as if nothing existed. Raises ProjectError, ValueError, OSError."""
    return _each(
        _chosen(stacks_of(checkout), choice), lambda stack: report(_outcome(checkout, stack, choice)[0], stack=stack)
    )


def preview_state(project: Path, state: Path, choice: Choice) -> list[StackReport]:
    """The plan of each stack against its state, with its secrets.

    Raises ProjectError, SecretsError, StateError, ValueError, OSError.
    """
    folder = working_folder(project)
    reports = []
    for stack in _chosen(stacks_of(folder), choice):
        events: list[Event] = []
        options = Options(LocalProviders, packs_of(folder, stack, choice))
        run_preview(Request(project, stack, state), options, events.append)
        reports.append(report(_anywhere(of_engine(events), folder), stack=stack))
    return reports


def _is_broken(outcome: Outcome) -> bool:
    return any(problem.severity == "error" for problem in outcome.problems)


def _chosen(known: set[str] | list[str], choice: Choice) -> list[str]:
    if unknown := sorted({*choice.stacks} - {*known}):
        raise ValueError(f"no stack file of {', '.join(unknown)}; stacks: {', '.join(sorted(known)) or 'none'}")
    return sorted(choice.stacks or known)


def _each(stacks: Sequence[str], of: Callable[[str], StackReport]) -> list[StackReport]:
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="stack") as pool:
        try:
            return list(pool.map(of, stacks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _outcome(checkout: Checkout, stack: str, choice: Choice, before: Plan | None = None) -> tuple[Outcome, Plan | None]:
    try:
        made = plan(checkout, stack, packs_of(checkout, stack, choice), before.resources if before else ())
    except (ProjectError, SecretsError) as error:
        return _anywhere(Outcome(stack, (), (), (Problem("error", str(error)),)), checkout), None
    outcome = replace(of_engine(made.events), stack=stack)
    return _anywhere(outcome, checkout), made


def packs_of(checkout: Checkout, stack: str, choice: Choice) -> list[Pack]:
    """The project's policy packs, else ours; `policies.STACK.json` beside the stack file configures the first.

    Raises ProjectError.
    """
    project = checkout.project
    ours = str(Path(policy.__file__).parent)
    names = choice.packs or [POLICY if (project / POLICY / PACK_FILE).exists() else ours]
    file = load_project(project).stack_config_dir / f"policies.{stack}.json"
    try:
        config = json.loads(file.read_text()) if file.exists() else None
    except ValueError as error:
        raise ProjectError(f"{file}: not JSON: {error}") from None
    return [(project / name, config if index == 0 else None) for index, name in enumerate(names)]


def _anywhere(outcome: Outcome, checkout: Checkout) -> Outcome:
    """The outcome without the folder in which the commit happened to be, and without the warnings about simulation."""

    def told(message: str) -> str:
        return message.replace(f"{checkout.project}{os.sep}", "").replace(str(checkout.project), ".")

    problems = tuple(
        replace(problem, message=told(problem.message))
        for problem in outcome.problems
        if not problem.message.startswith(("simulated resources", "simulated results"))
    )
    findings = tuple(replace(finding, message=told(finding.message)) for finding in outcome.findings)
    return replace(outcome, problems=problems, findings=findings)
