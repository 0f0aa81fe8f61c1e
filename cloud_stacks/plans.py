"""Plans all stacks of one or two commits, several at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import policy
from cloud_stacks import offline
from cloud_stacks.comparison import StackReport, report
from cloud_stacks.offline import Pack, rehearsal
from cloud_stacks.outcome import Outcome, Problem
from cloud_stacks.policies.host import PACK_FILE, PolicyError, PolicyHost
from local.pulumi.project import ProjectError, load_project, stacks_in
from local.pulumi.rehearsal import Checkout, Rehearsal, Runs
from local.pulumi.toolchain import Toolchain

POLICY: Final = "policy"
"""The folder of a project's policy pack, where no other is given."""


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


def compare(tools: Toolchain, base: Checkout, head: Checkout, choice: Choice) -> list[StackReport]:
    """What the head does to each stack as the base would leave it. Raises ProjectError, ValueError, OSError."""
    of_base, of_head, runs = stacks_of(base), stacks_of(head), Runs()

    def one(stack: str) -> StackReport:
        if stack not in of_head:
            gone = "the stack file is deleted: nobody manages its resources any more, which stay as they are"
            return StackReport(stack, problems=(Problem("warning", gone),))
        with rehearsal(tools, stack, runs) as folder:
            if stack not in of_base:
                return report(_outcome(folder, head, choice), stack=stack)
            before = _outcome(folder, base, choice)
            if not before.has_error:
                folder.load(base, offline.left(folder, base))
            after = _outcome(folder, head, choice)
        if before.has_error:
            alone = Problem("warning", "the base cannot be planned, so every resource counts as new")
            after = replace(after, problems=(*after.problems, alone))
        return report(after, before, stack)

    return _each(_chosen({*of_base, *of_head}, choice), one, runs)


def preview(tools: Toolchain, checkout: Checkout, choice: Choice) -> list[StackReport]:
    """The plan of each stack as if nothing existed. Raises ProjectError, ValueError, OSError."""
    runs = Runs()

    def one(stack: str) -> StackReport:
        with rehearsal(tools, stack, runs) as folder:
            return report(_outcome(folder, checkout, choice), stack=stack)

    return _each(_chosen(stacks_of(checkout), choice), one, runs)


def _chosen(known: set[str] | list[str], choice: Choice) -> list[str]:
    if unknown := sorted({*choice.stacks} - {*known}):
        raise ValueError(f"no stack file of {', '.join(unknown)}; stacks: {', '.join(sorted(known)) or 'none'}")
    return sorted(choice.stacks or known)


def _each(stacks: Sequence[str], of: Callable[[str], StackReport], runs: Runs) -> list[StackReport]:
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="stack") as pool:
        try:
            return list(pool.map(of, stacks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            runs.end()
            raise


def _outcome(folder: Rehearsal, checkout: Checkout, choice: Choice) -> Outcome:
    try:
        packs = packs_of(checkout, folder.stack, choice)
        return _plain(_with_levels(offline.preview(folder, checkout, packs), folder, checkout, packs))
    except (PolicyError, ProjectError) as error:
        message = str(error).replace(f"{checkout.project}{os.sep}", "")
        return Outcome(folder.stack, (), (), (Problem("error", message),))


def _with_levels(outcome: Outcome, folder: Rehearsal, checkout: Checkout, packs: Sequence[Pack]) -> Outcome:
    """The outcome with the mandatory rules that could not be evaluated: only the packs know a rule's level."""
    if all(finding.level != "not-evaluated" for finding in outcome.findings):
        return outcome
    mandatory = frozenset[str]()
    for pack, config in packs:
        host = PolicyHost.start(
            pack,
            engine_address="127.0.0.1:1",  # nothing is evaluated
            project=load_project(checkout.project).name,
            stack=folder.stack,
            dry_run=True,
            config={},
            policy_config=config,
            environment=folder.environment(checkout),
            python=checkout.python,
        )
        try:
            mandatory |= host.mandatory
        finally:
            host.close()
    findings = (
        replace(finding, unevaluated_mandatory=finding.level == "not-evaluated" and finding.policy in mandatory)
        for finding in outcome.findings
    )
    return replace(outcome, findings=tuple(findings))


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


def _plain(outcome: Outcome) -> Outcome:
    """The outcome without the warnings about simulation."""
    simulated = ("simulated resources", "simulated results", "using pulumi-")
    return replace(outcome, problems=tuple(p for p in outcome.problems if not p.message.startswith(simulated)))
