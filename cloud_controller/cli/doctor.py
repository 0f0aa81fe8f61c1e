"""Implements `cloud-controller doctor`: opens what its checks look at, runs them, and shows what they find."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import orjson

from cloud_controller import logs, manifests
from cloud_controller.cli import options as cli_options
from cloud_controller.cli import values
from cloud_controller.cli.options import kubernetes
from cloud_controller.cli.parser import Parser, nearest
from cloud_controller.cloud import Cloud, InvalidConfiguration
from cloud_controller.controller_names import not_offered
from cloud_controller.doctor import report
from cloud_controller.doctor.checks import ALL
from cloud_controller.doctor.findings import Check, Result, examine
from cloud_controller.doctor.push import push
from cloud_controller.doctor.seen import GRACE, Daemon, Scrape, Seen, Target, Unreadable, joined
from cloud_controller.kube import NAMESPACES, Kube

_OWN = ("--bind-address", "--config", "--cloud-config", "--kubeconfig")
"""Options of the daemon that mean something only where it runs."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options."""
    what = parser.add_argument_group("what is examined")
    what.add_argument(
        "--workload",
        type=values.object_name,
        default=manifests.NAME,
        metavar="NAME",
        help=f"name of the CCM's DaemonSet or Deployment, in the Lease's namespace (default: {manifests.NAME})",
    )
    cli_options.add_lease_name(what)
    what.add_argument(
        "--only",
        type=values.words,
        default=[],
        metavar="LIST",
        help="comma-separated checks (default: all for which the options suffice): "
        f"{', '.join(check.name for check in ALL)}",
    )
    what.add_argument(
        "--scrape",
        type=values.duration,
        nargs="?",
        const=10.0,
        metavar="TIME",
        help="also read the CCM's metrics twice, so long apart (default with --scrape: 10s): "
        f"{', '.join(check.name for check in ALL if check.needs == 'scrape')}. Where its pods require a token "
        "for them, SENDS THE BEARER TOKEN of the kubeconfig or the pod to the pods' addresses; without --scrape-ca it "
        "does not verify their certificates, as Prometheus with insecure_skip_verify",
    )
    what.add_argument(
        "--scrape-ca", metavar="FILE", help="PEM file with the CA of the CCM's certificates, which name its addresses"
    )
    what.add_argument(
        "--grace",
        type=values.duration,
        default=GRACE.total_seconds(),
        metavar="TIME",
        help="how long new nodes and Services may take before they are findings (default: 2m)",
    )
    shown = parser.add_argument_group("output")
    shown.add_argument(
        "-o", "--output", choices=("text", "json", "junit"), default="text", help="output format (default: text)"
    )
    shown.add_argument(
        "--watch",
        type=values.duration,
        nargs="?",
        const=30.0,
        metavar="TIME",
        help="examine again and again, with this pause, and show the report when it has changed (with --watch: 30s)",
    )
    shown.add_argument(
        "--push-gateway",
        metavar="URL",
        help="also send the findings to this Prometheus Pushgateway: cloud_controller_doctor_findings{check,severity}",
    )


def run(options: argparse.Namespace) -> int:
    """Find what is wrong with a cluster's cloud controller manager (CCM), first causes first. Changes nothing, needs
    only read access, and works while the CCM is down. Exits with 0 if all is well, 3 for warnings or if a check could
    not be done, 4 for critical findings, and 1 if the findings cannot be pushed; with --watch, it goes on then."""
    logs.configure(cli_options.log_level(options), options.logging_format)
    checks = _chosen(options)
    results = _round(checks, options, None)
    with suppress(KeyboardInterrupt):
        while options.watch is not None:
            time.sleep(options.watch)
            results = _round(checks, options, results)
    return report.exit_code(results)


def _round(checks: Sequence[Check], options: argparse.Namespace, before: Sequence[Result] | None) -> list[Result]:
    """Examine, show what is not as it was before, and push it."""
    seen = _seen(options)
    results = examine(checks, seen)
    if before is None or report.document(results) != report.document(before):
        _show(options.output, results, lines=options.watch is not None)
    if options.push_gateway is not None:
        try:
            push(options.push_gateway, results, time.time(), cluster(seen))
        except ConnectionError as error:
            if options.watch is None:
                raise
            print(f"cloud-controller: {error}", file=sys.stderr, flush=True)
    return results


def cluster(seen: Seen) -> str:
    """The cluster's identity: the UID of namespace kube-system; "unknown" if it cannot be read."""
    try:
        namespace = seen.get(NAMESPACES, manifests.NAMESPACE)
    except Unreadable:
        return "unknown"
    return str(namespace["metadata"]["uid"]) if namespace else "unknown"


def _chosen(options: argparse.Namespace) -> list[Check]:
    known = {check.name: check for check in ALL}
    for name in options.only:
        if name not in known:
            raise InvalidConfiguration("only", f"{name!r} is not a check{nearest(name, [*known])}", ", ".join(known))
    if options.only:
        return [check for check in ALL if check.name in options.only]
    return [check for check in ALL if not check.needs or getattr(options, check.needs) is not None]


def _show(output: str, results: Sequence[Result], *, lines: bool) -> None:
    match output:
        case "json":
            style = 0 if lines else orjson.OPT_INDENT_2
            print(orjson.dumps(report.document(results), option=style).decode(), flush=True)
        case "junit":
            print(report.junit(results), end="", flush=True)
        case _:
            head = [f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"] if lines else []
            print("\n".join([*head, *report.text(results)]), flush=True)


def _seen(options: argparse.Namespace) -> Seen:
    target = Target(options.leader_elect_resource_namespace, options.workload, options.leader_elect_resource_name)

    def cloud() -> Cloud:
        try:
            return cli_options.cloud(options)
        except InvalidConfiguration:
            if options.cloud_config is not None:
                raise
            raise Unreadable("no cloud config was given: pass --cloud-config") from None

    def daemon(kube: Kube, opened: Cloud | None, arguments: Sequence[str] | None) -> Daemon:
        given = options if arguments is None else with_arguments(arguments, options)
        left_out = frozenset() if opened is None else not_offered(opened)
        names = cli_options.chosen(given, left_out)
        settings, _ = cli_options.plan_settings(given, kube, names)
        return Daemon(options.cloud, names, settings)

    scrape = None if options.scrape is None else Scrape(options.scrape, options.scrape_ca)
    grace = timedelta(seconds=options.grace)
    return Seen(lambda: kubernetes(options), cloud, daemon, target, grace=grace, scrape=scrape)


def with_arguments(arguments: Sequence[str], options: argparse.Namespace) -> argparse.Namespace:
    """The options of `doctor`, with those of the daemon's container in their place. Raises InvalidConfiguration."""
    parser = _Lenient(forwards=True, add_help=False)
    cli_options.add_controllers(parser)
    cli_options.add_lease_name(parser)
    own = [each for each in joined(arguments) if each.partition("=")[0] not in _OWN]
    parser.set_defaults(**vars(options))
    found: argparse.Namespace = parser.parse_known_args(own)[0]
    return found


class _Lenient(Parser):
    """Raises its errors, and reads over what it does not know: other CCMs have options of their own."""

    def error(self, message: str) -> NoReturn:
        """Raise the message."""
        raise InvalidConfiguration("arguments of the CCM's container", message)
