"""What a check says: findings, or why it could not look."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from cloud_controller import logs
from cloud_controller.doctor.seen import Seen, Unreadable

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONGEST = 600
"""Characters of one piece of evidence."""


class Severity(StrEnum):
    """How bad a finding is."""

    CRITICAL = "critical"
    """Something that the CCM is there for does not work, or is about to stop."""
    WARNING = "warning"
    """It works, and will hurt later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    `subject`: the object, as `node/NAME`, `service/NAMESPACE/NAME`, `pod/NAMESPACE/NAME`; empty: the whole cluster.
    `what`: one sentence, without the subject's name in front. `evidence`: what was read that shows it. `remedy`: what
    to do. `follows_from`: the checks whose findings explain this one; None: those of the check.
    """

    subject: str = ""
    what: str
    evidence: tuple[str, ...] = ()
    remedy: str
    severity: Severity = Severity.CRITICAL
    follows_from: frozenset[str] | None = None


class OutOfReach(Exception):
    """The rest of what a check asks nobody can know, because the cloud does not tell; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question about a running cluster.

    `holds`: what is true when it finds nothing. `why`: why that matters. `lines`: the rows of seed 002 that it is for
    (`11.2.3`, `10.1.1`). `after`: the checks whose critical findings explain this one's. `page`: its page under docs/.
    `needs`: the option of `doctor` without which it is left out; empty: it always runs.
    """

    name: str
    holds: str
    why: str
    lines: tuple[str, ...]
    page: str
    run: Callable[[Seen], Iterable[Finding]]
    after: frozenset[str] = frozenset()
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found. `not_done`: why it could not look, or could not finish. `out_of_reach`: what it could not ask
    in this cloud, with any rights."""

    check: Check
    findings: tuple[Finding, ...] = ()
    not_done: str | None = None
    out_of_reach: str | None = None

    @property
    def passed(self) -> bool:
        """Whether it looked at everything and found nothing."""
        return not (self.findings or self.not_done or self.out_of_reach)


def examine(checks: Iterable[Check], seen: Seen) -> list[Result]:
    """Run the checks, one after another."""
    return [_run(check, seen) for check in checks]


def _run(check: Check, seen: Seen) -> Result:
    found: list[Finding] = []
    try:
        # One by one: what was found before something could not be read still counts.
        found.extend(map(_cleaned, check.run(seen)))
    except Unreadable as error:
        return Result(check, tuple(found), not_done=_text(str(error)))
    except OutOfReach as error:
        return Result(check, tuple(found), out_of_reach=_line(str(error)))
    return Result(check, tuple(found))


def _cleaned(finding: Finding) -> Finding:
    return replace(finding, what=_text(finding.what), evidence=tuple(map(_text, finding.evidence)))


def _text(given: str) -> str:
    line = _line(given)
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"


def _line(given: str) -> str:
    """Text of others in one line that any terminal and any XML can show, without what looks like a secret."""
    plain = _COLOURS.sub("", given)
    return logs.redacted(" ".join("".join(each if each.isprintable() else " " for each in plain).split()))


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding in a report. `causes`: the checks whose critical findings explain it; none: a first cause."""

    check: Check
    finding: Finding
    causes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The form of `--output json`."""
        finding = self.finding
        return {
            "check": self.check.name,
            "severity": finding.severity.value,
            "subject": finding.subject,
            "what": finding.what,
            "evidence": list(finding.evidence),
            "why": self.check.why,
            "remedy": finding.remedy,
            "page": self.check.page,
            "followsFrom": list(self.causes),
        }


def explained(results: Iterable[Result]) -> list[Explained]:
    """All findings, first causes first, then critical before warning, then in the order of the checks."""
    results = list(results)
    after = {each.check.name: each.check.after for each in results}
    # What only warns has broken nothing yet.
    broken = {each.check.name for each in results if any(f.severity is Severity.CRITICAL for f in each.findings)}

    def causes(names: frozenset[str]) -> frozenset[str]:
        """Those of these checks, and of the checks before them, that found something broken."""
        direct = names & broken
        further = [causes(after[name]) for name in names - direct if name in after]
        return direct.union(*further)

    found = []
    for result in results:
        for finding in result.findings:
            names = result.check.after if finding.follows_from is None else finding.follows_from
            found.append(Explained(result.check, finding, tuple(name for name in after if name in causes(names))))
    return sorted(found, key=lambda each: (bool(each.causes), each.finding.severity is not Severity.CRITICAL))
