"""The page of doctor's checks, and which lines of the production checklist each of them holds.

`python -m cloud_controller.cli.doctor_docs page|checks` prints one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from cloud_controller.doctor.checks import ALL
from cloud_controller.doctor.checks.causes import CCM_DOWN
from cloud_controller.doctor.findings import Check

_HEAD = """\
# The checks of doctor

<!-- Made by `make docs` from cloud_controller/doctor/checks; change the checks, not this page. -->

In the order of a report, in which each check comes after those that may explain its findings. [Doctor](doctor.md)
explains how to run it. The numbers are those of the requirements (seed 002): rows of its table of symptoms (10.1), and
lines of [the production checklist](checklist.md).

| check | what holds if it finds nothing | 002 |
|---|---|---|
"""
_DOWN = "whatever keeps the CCM from its work"


def page() -> str:
    """The whole page."""
    rows = "".join(f"| [`{check.name}`](#{check.name}) | {check.holds} | {_lines(check)} |\n" for check in ALL)
    down = ", ".join(f"`{check.name}`" for check in ALL if check.name in CCM_DOWN)
    about = f'\nWhere it says "{_DOWN}", these checks are meant: {down}.\n'
    return _HEAD + rows + about + "".join(part for check in ALL for part in _section(check))


def checks() -> str:
    """Each check's lines, module and tests, as JSON."""
    found = [
        {"name": check.name, "holds": check.holds, "lines": [*check.lines], "test": where_tested(check)}
        for check in ALL
    ]
    return json.dumps({"checks": found}, indent=2) + "\n"


def where_tested(check: Check) -> str:
    """The file of the check's tests, which its module names."""
    return f"tests/cloud_controller/doctor/test_{check.run.__module__.rpartition('.')[2]}_check.py"


def _lines(check: Check) -> str:
    return ", ".join(check.lines)


def _section(check: Check) -> Iterator[str]:
    yield f"\n## {check.name}\n\n- Holds: {check.holds}.\n- Why: {check.why}.\n"
    explained_by = [f"`{other.name}`" for other in ALL if other.name in check.after]
    if check.after >= CCM_DOWN:
        explained_by = [_DOWN, *(name for name in explained_by if name.strip("`") not in CCM_DOWN)]
    if explained_by:
        yield f"- May follow from: {', '.join(explained_by)}.\n"


if __name__ == "__main__":
    sys.stdout.write({"page": page, "checks": checks}[sys.argv[1]]())
