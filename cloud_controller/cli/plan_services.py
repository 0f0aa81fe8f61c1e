"""Implements `cloud-controller plan -f`: plans the Services of manifests before anybody applies them.

Changes nothing. With a cluster, the API server says by dry runs what it would store, and the plan is for cluster and
cloud as they are; with --against, two sets of manifests are compared without either.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from cloud_controller import clouds
from cloud_controller.binding import judge
from cloud_controller.cli import offline_plan, planned_output, service_dry_run, service_files
from cloud_controller.cli import options as cli_options
from cloud_controller.cli.node_ports import collisions
from cloud_controller.cli.planned_sarif import sarif
from cloud_controller.cli.planned_service import (
    ATTENTION,
    CHANGES,
    PlannedService,
    ServicesPlan,
    annotations_by_field,
    planned,
)
from cloud_controller.cli.service_dry_run import Answer
from cloud_controller.cloud import Cloud, InvalidConfiguration
from cloud_controller.controllers.instance_snapshot import InstanceSnapshot
from cloud_controller.controllers.service.apply import load_balancers_of
from cloud_controller.controllers.service.controller import NAME
from cloud_controller.controllers.service.rules import catalogue_of
from cloud_controller.kube import Kube
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.plan import Action, Plan, object_of
from cloud_controller.planning import Found, PlanSettings, find
from cloud_controller.safeguard import Safeguard

FORMATS = ("text", "json", "markdown", "sarif")
_ONLY_WITH_FILES = ("markdown", "sarif")
_ASSUMED = "does not exist yet: node ports and defaults of its Services are assumed, and no admission has answered"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `plan`."""
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMATS,
        default="text",
        help="output format; markdown and sarif need -f (default: text)",
    )
    parser.add_argument(
        "--detailed-exitcode",
        action="store_true",
        help=f"exit with {CHANGES} if there are changes, and with {ATTENTION} if an address is replaced or a Service "
        "is refused or, without -f, needs attention",
    )
    manifests = parser.add_argument_group("manifests", "plan Services before they are applied")
    manifests.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="plan the Services of these manifests instead of those in the cluster (repeatable; -: stdin)",
    )
    manifests.add_argument(
        "-R", "--recursive", action="store_true", help="read subdirectories too (default: only the directory itself)"
    )
    manifests.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="FILE|DIR|-",
        help="compare -f with these earlier manifests, without a cluster and without a cloud (repeatable)",
    )
    manifests.add_argument(
        "--force-conflicts",
        action="store_true",
        help="in server-side apply, take over fields of other managers, as kubectl's option (default: refused)",
    )


def check(options: argparse.Namespace) -> None:
    """Raise InvalidConfiguration for options that contradict each other."""
    if options.filename:
        if NAME not in cli_options.chosen(options):
            raise InvalidConfiguration("filename", f"requires controller {NAME}, which is not enabled")
        if options.against and options.force_conflicts:
            raise InvalidConfiguration("force-conflicts", "conflicts with --against, which asks no API server")
        return
    for name in ("against", "recursive", "force_conflicts"):
        if getattr(options, name):
            raise InvalidConfiguration(name.replace("_", "-"), "requires -f")
    if options.output in _ONLY_WITH_FILES:
        raise InvalidConfiguration("output", f"{options.output} requires -f", "text, json")


def run(options: argparse.Namespace, opened: Callable[[], tuple[Cloud, Kube, PlanSettings, Safeguard]]) -> int:
    """Print the plan of the manifests' Services; return the exit code. `opened`: the clients, if they are needed."""
    found = _offline(options) if options.against else _online(options, *opened())
    print(_rendered(found, options.output))
    return found.exit_code if options.detailed_exitcode else 0


def _rendered(found: ServicesPlan, output: str) -> str:
    match output:
        case "text":
            return planned_output.text(found)
        case "markdown":
            return planned_output.markdown(found)
    document = sarif(found) if output == "sarif" else found.to_json()
    # In ASCII: the names of files need not be UTF-8.
    return json.dumps(document, indent=2)


def _offline(options: argparse.Namespace) -> ServicesPlan:
    cloud = clouds.descriptor(options.cloud)
    both = [*options.filename, *options.against]
    if both.count(service_files.STDIN) > 1:
        raise InvalidConfiguration("against", "stdin is named twice", "- once")
    after, before = (
        service_files.parse(service_files.read(paths, recursive=options.recursive), "default")
        for paths in (options.filename, options.against)
    )
    pods = cli_options.cluster_ranges(options)
    return offline_plan.compare(before, after, cloud, cli_options.service_options(options, pods))


def _online(
    options: argparse.Namespace, cloud: Cloud, kube: Kube, settings: PlanSettings, guard: Safeguard
) -> ServicesPlan:
    texts = service_files.read(options.filename, recursive=options.recursive)
    manifests = service_files.parse(texts, kube.namespace)
    answers = service_dry_run.ask(kube, manifests, force_conflicts=options.force_conflicts)
    refused = collisions(each.given for each in answers if each.service is not None)
    answers = [
        replace(each, service=None, refusal=refused[each.given.key]) if each.given.key in refused else each
        for each in answers
    ]
    applied = tuple(answer.service for answer in answers if answer.service is not None)
    found = Found(Plan())
    if applied:
        found = find(NAME, kube, cloud, InstanceSnapshot(cloud.instances), replace(settings, applied=applied))
    judge([found.evidence] if found.evidence else [], guard.binding, cloud.cluster_id)
    catalogue = load_balancers_of(cloud).builder.catalogue
    actions: dict[str, list[Action]] = {}
    for action in found.plan:
        actions.setdefault(object_of(action.target), []).append(action)
    services = [_planned(each, actions.get(each.given.target, []), found, catalogue) for each in answers]
    unasked = sorted({each.given.object["metadata"]["namespace"] for each in answers if each.assumed})
    notes = [f"namespace {name} {_ASSUMED}" for name in unasked]
    return ServicesPlan(tuple(services), manifests.ignored, tuple(notes))


def _planned(answer: Answer, actions: Sequence[Action], found: Found, catalogue: Catalogue) -> PlannedService:
    given, service = answer.given, answer.service
    if service is None:
        return planned(given.key, given.source, (), wanted=False, refusal=answer.refusal)
    if answer.assumed:
        actions = [replace(action, assumed=True) for action in actions]
    result = planned(
        given.key,
        given.source,
        actions,
        wanted=given.target in found.wanted,
        annotations=annotations_by_field(service, catalogue_of(service, catalogue)),
    )
    return replace(result, warnings=answer.warnings)
