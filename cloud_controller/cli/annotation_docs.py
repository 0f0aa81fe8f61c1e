"""The reference page of annotations, made from the clouds' catalogues.

`python -m cloud_controller.cli.annotation_docs` prints it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from cloud_controller import clouds
from cloud_controller.load_balancers.catalogue import Annotation, Catalogue, Mutability
from cloud_controller.load_balancers.refusals import Refusal

_HEAD = """\
<!-- Made by `python -m cloud_controller.cli.annotation_docs`; change the catalogues, not this page. -->
# Annotations of a LoadBalancer Service

What a Service of type `LoadBalancer` may tell its cloud. Every annotation is also a typed argument of the component
`LoadBalancerService` (its settings); lists are comma-separated in an annotation. A value that is not allowed, and a
misspelt name, is an error that names what is allowed: an event at the Service, a failed preview in the program.

A change takes effect, by annotation, in one of these ways; the plan says which before it happens:
"""

_EFFECTS = {
    Mutability.IN_PLACE: "the load balancer is changed; address and other ports stay as they are.",
    Mutability.REPLACE: "a new load balancer takes its place: **the address changes**.",
    Mutability.CREATE_ONLY: "only a load balancer made later gets the new value; the plan says that it is ignored.",
}


def page() -> str:
    """The whole page in Markdown."""
    lines = [_HEAD, *(f"- **{mutability.value}**: {effect}" for mutability, effect in _EFFECTS.items())]
    for cloud in clouds.descriptors():
        lines += ["", f"## {cloud.name}"]
        for catalogue in cloud.catalogue.kinds or (cloud.catalogue,):
            lines += _section(catalogue)
    return "\n".join(lines) + "\n"


def _section(catalogue: Catalogue) -> Iterator[str]:
    offered = [entry for entry in catalogue if not entry.ignored]
    ignored = [entry for entry in catalogue if entry.ignored]
    level = "###"
    if catalogue.kind:
        classes = ", ".join(f"`{each}`" if each else "none" for each in catalogue.classes)
        yield from ("", f"### {catalogue.kind}", "", f"Services whose `spec.loadBalancerClass` is: {classes}.")
        level = "####"
    yield ""
    yield from _table(
        ("annotation", "argument", "allowed", "default", "a change is"),
        [(f"`{e.name}`", f"`{e.argument}`", _allowed(e), _default(e), e.mutability.value) for e in offered],
    )
    for entry in offered:
        yield from ("", f"{level} `{entry.name}`", "", *_paragraph(entry, catalogue))
    if catalogue.refusals:
        yield from ("", f"{level} Also refused", "")
        yield "Settings that are allowed by themselves, but not with the Service's others, and words of lists. They are"
        yield "checked in this order; an ellipsis stands for what the Service says."
        yield ""
        yield from _table(("refused", "why", "allowed"), [_refused(rule, catalogue) for rule in catalogue.refusals])
    if ignored:
        offering = f"{catalogue.kind} load balancers of {catalogue.cloud}" if catalogue.kind else catalogue.cloud
        yield from ("", f"{level} Known, but not offered by {offering}", "")
        yield "The plan and a Warning event `NotOffered` name one that is ignored, and say why. One that restricts"
        yield "access is an error: without it, more clients could connect than its author believes."
        yield ""
        yield from _table(
            ("annotation", "what it is for", "restricts access", "here", "honoured by"),
            [_not_offered(entry) for entry in ignored],
        )


def _refused(rule: Refusal, catalogue: Catalogue) -> Sequence[str]:
    field, why, allowed = (saying.template.replace("{}", "…") for saying in rule.sayings(catalogue.by_argument))
    return f"`{field.removeprefix('annotation ')}`", why, allowed


def _not_offered(entry: Annotation) -> Sequence[str]:
    harmless = ", ".join(f"`{value}`" if value else "an empty value" for value in entry.harmless)
    here = f"refused, but for {harmless}" if harmless else "refused" if entry.restricts else "ignored"
    restricts = "yes" if entry.restricts else "no"
    return f"`{entry.name}`", entry.description, restricts, f"{here}: {entry.ignored}", entry.honoured_by or ""


def _paragraph(entry: Annotation, catalogue: Catalogue) -> Iterator[str]:
    yield f"{entry.description} Applies to {entry.applies_to}."
    yield ""
    example = entry.example or _example(entry)
    yield f'- Example: `{_example_name(entry)}: "{example}"`'
    yield f"- Since version {entry.since}; source: {entry.source}."
    if entry.aliases:
        yield f"- Older names: {', '.join(f'`{alias}`' for alias in entry.aliases)}."
    if entry.exclusive:
        yield "- If a new load balancer needs one that the old one has, the old one is deleted first: until the new one"
        yield "  serves, clients cannot connect."
    if kinds := [f"`{each.kind}`" for each in catalogue.namings if each.argument == entry.argument]:
        yield f"- An administrator may limit what it names: {' and '.join(kinds)} in `--annotations-may-name`."
    if entry.honoured_by:
        yield f"- Also honoured by: {entry.honoured_by}."


def _example_name(entry: Annotation) -> str:
    return entry.name.removesuffix(entry.suffix or "") + entry.suffix_example if entry.suffix else entry.name


def _example(entry: Annotation) -> str:
    if entry.type is bool:
        return "true"
    return str(entry.default or (entry.allowed[0] if entry.allowed else entry.minimum))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _allowed(entry: Annotation) -> str:
    return ", ".join(f"`{value}`" for value in entry.allowed) if entry.allowed else entry.allowed_text


def _default(entry: Annotation) -> str:
    if entry.default_note or entry.default is None:
        return entry.default_note or "none"
    return f"`{entry.to_text(entry.default)}`"


if __name__ == "__main__":
    sys.stdout.write(page())
