"""Rule: the cloud controller manager logs to its output, which the platform collects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.command_lines import flag, known_words
from policy.objects import dig, each, items
from policy.programs import commands
from policy.rules import ADVISORY, MEDIUM, ResourceRule
from policy.subjects import Subject
from policy.unknowns import Problem, first_known, if_known, problem_if
from policy.workloads import IMAGES, Container, containers, is_ccm, is_program, of_ccm

_FILES = ("--log-dir", "--log-file")
_BESIDES = ("--alsologtostderr", "--also-stdout")
_TO_OUTPUT = "--logtostderr"
_OFF = ("false", "0")
_OUTPUTS = ("/dev/stdout", "/dev/stderr", "/proc/1/fd/1", "/proc/1/fd/2")


def problems(subject: Subject) -> Iterator[Problem]:
    """CCMs whose log goes to a file or nowhere."""
    yield from of_ccm(subject, _of_containers(subject))


def _of_containers(subject: Subject) -> Iterator[Problem]:
    for container in containers(subject):
        yield partial(problem_if, [partial(is_ccm, subject, container)], partial(_problem, container, subject.config))


def _problem(container: Container, config: Mapping[str, Any]) -> str | None:
    spec = container()
    # Where a log goes is never unknown: an unknown argument says something else.
    known = {"env": if_known(partial(dig, spec, "env"))}
    known |= {field: _known(dig(spec, field)) for field in ("command", "args")}
    flags = (partial(_flag, known, name) for name in _FILES)
    questions = (*flags, partial(_off, known), partial(_redirected, spec, config))
    found = first_known(questions)
    return found and f"container {dig(spec, 'name')} {found}, not to its output, which the platform collects"


def _known(words: Any) -> list[str]:
    return [str(text) for text in map(if_known, each(words)) if text is not None]


def _flag(spec: Mapping[str, Any], name: str) -> str | None:
    # A file beside the output does no harm.
    if (flag(spec, name) or _OUTPUTS[0]) in _OUTPUTS or any(_is_on(flag(spec, other)) for other in _BESIDES):
        return None
    return f"logs to a file ({name})"


def _is_on(value: str | None) -> bool:
    return value is not None and value.lower() not in _OFF


def _off(spec: Mapping[str, Any]) -> str | None:
    return f"logs to a file ({_TO_OUTPUT}=false)" if (flag(spec, _TO_OUTPUT) or "").lower() in _OFF else None


def _redirected(spec: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    known = [word for field in ("command", "args") for word in known_words(spec, field)]
    # Unknown arguments of a program redirect nothing; an unknown script may.
    found = commands(known) or commands(
        [str(word) for field in ("command", "args") for word in items(dig(spec, field))]
    )
    of_ccm = [each for each in found if any(is_program(name, config) for name in each.names)] or found[-1:]
    files = [file for each in of_ccm for file in each.files if file not in _OUTPUTS]
    return "redirects its output to a file" if files else None


CCM_LOGS_TO_OUTPUT = ResourceRule(
    "ccm-workload-log-to-output",
    problems,
    why=(
        "A cloud controller manager must log to its standard output or error. The platform collects these and keeps "
        "them; a file in the container is lost with it, just when somebody wants to know why it ended."
    ),
    level=ADVISORY,
    settings={"images": IMAGES},
    title="The CCM logs where the platform collects",
    severity=MEDIUM,
    lines=["11.3.7"],
    judges=(
        "The CCM's container sets neither `--log-file` nor `--log-dir` (unless it has `--alsologtostderr`, too) "
        "nor `--logtostderr=false`, and no shell redirects its output to a file; `| tee FILE` passes. A file on the "
        "machine (`hostPath`) does not count as collected."
    ),
    unseen=(
        "Whether the platform collects and keeps the output, and for how long; scripts in the image or in a ConfigMap "
        "that redirect it; an argument that is unknown in a preview."
    ),
    tags=["observability"],
    remedy=(
        "Remove the flags and redirections, and let the platform collect the output (a managed cluster has an add-on "
        "for it). A copy in a file can stay by `| tee FILE`."
    ),
    url="https://kubernetes.io/docs/concepts/cluster-administration/logging/",
)
