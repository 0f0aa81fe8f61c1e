"""Makes rules: each judges objects one by one, or the stack as a whole, and is documented in one way.

A rule yields problems, which are asked one by one: what is certain is reported, and a value that is unknown in a
preview makes the rule "not evaluated" besides (`policy/unknowns.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NotRequired, TypedDict, Unpack, cast

from pulumi_policy import (
    EnforcementLevel,
    PolicyComplianceFramework,
    PolicyConfigSchema,
    ReportViolation,
    ResourceRemediation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UnknownValueError, unknown_checking_proxy

from policy.exemptions import SETTING, expired, is_judged
from policy.lines import LINES
from policy.objects import plain
from policy.subjects import Subject, subjects
from policy.unknowns import ODD, UNREADABLE, Problem, collect, judge, unreadable

ADVISORY, MANDATORY = EnforcementLevel.ADVISORY, EnforcementLevel.MANDATORY
LOW, MEDIUM, HIGH, CRITICAL = Severity.LOW, Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL

Objects = Callable[[Subject], Iterable[Problem]]
"""What may be wrong with one object; nothing for objects of no interest. May raise UnknownValueError."""
Settings = Mapping[str, Mapping[str, Any]]
"""A rule's settings besides `exempt`: their JSON schemas by name."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The objects of a stack that are known, and the rule's settings."""

    subjects: Sequence[Subject]
    config: Mapping[str, Any]
    not_applicable: Callable[[str], None]
    """Ends the rule: it says nothing of this stack, for the given reason."""

    def of(self, *kinds: str) -> list[Subject]:
        """The objects of these kinds."""
        return [subject for subject in self.subjects if subject.kind in kinds]


WholeStack = Callable[[Stack], Iterable[tuple[Subject | None, Problem]]]
"""What may be wrong with the stack, with the object to blame; None: the stack as such. May raise UnknownValueError."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """What the level `remediate` does to an object that violates a rule, where that cannot break it."""

    does: str
    apply: Callable[[Subject], bool]
    """Changes the object (`put`), and says whether it did. It sees unknown values as the SDK's texts for them."""


class About(TypedDict):
    """What a rule says of itself. A page is made of it (`policy/checklist_page.py`)."""

    title: str
    why: str
    """What must be so, and what happens otherwise."""
    level: EnforcementLevel
    reports_good: NotRequired[str]
    """Good programs that it still reports. While it does, it is advisory, in the stacks' settings too."""
    severity: Severity
    lines: NotRequired[Sequence[str]]
    """The lines of the checklist (002 §11) that it holds, such as `11.1.8`."""
    sections: NotRequired[str]
    """Other sections of the seeds, such as `8.1`."""
    judges: str
    """What exactly it judges, and what passes."""
    unseen: NotRequired[str]
    """Ways around it that are known."""
    remedy: str
    url: str
    tags: Sequence[str]
    settings: NotRequired[Settings]


class ResourceRule(ResourceValidationPolicy):
    """A rule for single objects."""

    def __init__(
        self, name: str, problems: Objects, remediation: Remediation | None = None, **about: Unpack[About]
    ) -> None:
        # The SDK takes a plain result as well, but its type says otherwise.
        remediate = cast(ResourceRemediation, partial(_remediate, problems, remediation.apply)) if remediation else None
        super().__init__(
            validate=partial(_check_resource, problems),
            remediate=remediate,
            **_common(name, about),
        )
        self.about = about
        self.module = _module(problems)
        self.remediation = remediation


class StackRule(StackValidationPolicy):
    """A rule for the stack as a whole, which sees the objects' outputs and dependencies."""

    remediation = None

    def __init__(self, name: str, problems: WholeStack, **about: Unpack[About]) -> None:
        super().__init__(validate=partial(_check_stack, problems), **_common(name, about))
        self.about = about
        self.module = _module(problems)


Rule = ResourceRule | StackRule


def setting(kind: str, description: str, default: Any, **more: Any) -> dict[str, Any]:
    """The JSON schema of a setting. `kind`: JSON schema's type, or `texts` for an array of strings."""
    schema = {"type": "array", "items": {"type": "string"}} if kind == "texts" else {"type": kind}
    return {**schema, **more, "default": default, "description": description}


def _module(problems: Callable[..., object]) -> str:
    return str((problems.func if isinstance(problems, partial) else problems).__module__)


def _common(name: str, about: About) -> dict[str, Any]:
    lines = about.get("lines", ())
    settings = {"exempt": SETTING, **{name: dict(schema) for name, schema in about.get("settings", {}).items()}}
    sections = [each for each in (", ".join(lines), about.get("sections", "")) if each]
    return {
        "name": name,
        "description": about["why"],
        "enforcement_level": about["level"],
        "config_schema": PolicyConfigSchema(settings),
        "display_name": about["title"],
        "severity": about["severity"],
        "framework": PolicyComplianceFramework(
            name="Kubernetes production checklist",
            version="002",
            reference=", ".join(sections),
            specification="; ".join(LINES[line] for line in lines) or about["title"],
        ),
        "tags": [*about["tags"]],
        "remediation_steps": about["remedy"],
        "url": about["url"],
    }


def _check_resource(problems: Objects, args: ResourceValidationArgs, report: ReportViolation) -> None:
    unknown: UnknownValueError | None = None
    for found in subjects(args.resource_type, args.props, args.name, args.get_config()):
        try:
            subject = found()
            _judge(subject, problems(subject), report)
        except UnknownValueError as error:
            # Judge the list's other objects all the same.
            unknown = unknown or error
    if unknown is not None:
        raise unknown


def _remediate(
    problems: Objects, apply: Callable[[Subject], bool], args: ResourceValidationArgs
) -> Mapping[str, Any] | None:
    """The resource's inputs after its remediation; None: unchanged. Raises UnknownValueError before it changes any."""
    # The SDK checks for unknown values only where a rule validates.
    seen = unknown_checking_proxy(plain(args.props))
    config = args.get_config()
    wrong: list[Subject] = []
    for judged, handed in zip(
        subjects(args.resource_type, seen, args.name, config),
        subjects(args.resource_type, args.props, args.name, config),
        strict=True,
    ):
        messages: list[str] = []
        subject = judged()
        judge([partial(is_judged, subject)], problems(subject), partial(_keep, messages))
        if messages and UNREADABLE not in messages[0]:
            wrong.append(handed())
    changed = [apply(subject) for subject in wrong]
    return args.props if any(changed) else None


def _keep(messages: list[str], message: str, _urn: str | None = None) -> None:
    messages.append(message)


def _check_stack(problems: WholeStack, args: StackValidationArgs, report: ReportViolation) -> None:
    unknown: UnknownValueError | None = None
    known: list[Subject] = []
    for resource in args.resources:
        for found in subjects(resource.resource_type, resource.props, resource.name, args.get_config(), resource):
            try:
                known.append(found())
            except UnknownValueError as error:
                unknown = unknown or error
    by_subject: dict[int, tuple[Subject | None, list[Problem]]] = {}
    try:
        for subject, problem in problems(Stack(known, args.get_config(), args.not_applicable)):
            by_subject.setdefault(id(subject), (subject, []))[1].append(problem)
    except UnknownValueError as error:
        unknown = unknown or error
    except ODD as error:
        report(unreadable(error), None)
    for subject, found_problems in by_subject.values():
        try:
            _judge(subject, found_problems, report)
        except UnknownValueError as error:
            unknown = unknown or error
    if unknown is not None:
        raise unknown


def _judge(subject: Subject | None, problems: Iterable[Problem], report: ReportViolation) -> None:
    if subject is None:
        judge([], problems, report)
        return
    collected = collect(problems)
    if collected:
        # Where its name is unknown, `is_judged` raises if that matters.
        with suppress(UnknownValueError):
            for message in expired(subject):
                report(message, subject.urn)
    judge([partial(is_judged, subject)], collected, lambda message, _urn: report(message, subject.urn))
