"""The commands of `python -m local` on a stack's site; each returns the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Final

from local import cluster_access, cluster_status
from local.control_plane.binaries import ensure as ensure_binaries
from local.pulumi.backend import is_in_use, masked_outputs
from local.pulumi.cli import on_stack
from local.stack_copy import copy_of
from local.stack_file import check_stack_file, read_stack_file
from local.stack_run import OK, Run, policies, prepare, report, require_pulumi, run_pulumi

READING: Final = ("status", "kubeconfig", "kubectl", "logs")
"""The commands that change nothing."""
_PARTIAL: Final = ("--target", "-t", "--exclude", "-x", "--preview-only")
"""How the CLI's options begin with which a `down` leaves resources."""


def _up(run: Run) -> int:
    check_stack_file(run.stack_file)  # before minutes of building: a mistyped name builds nothing
    cli = require_pulumi(run, "up")
    with cli.alone():  # so a second `up` fails at once and does not wait for the first one's resources
        ensure_binaries(report)
        prepare(run)
        code = run_pulumi(run, cli, "up", *policies(run.project, run.stack))
    if code != OK:
        return code
    for line in run.site.after_up(str(masked_outputs(run.stack_dir).get("clusterId", ""))):
        print(line, file=sys.stderr if run.json else sys.stdout)
    return OK


def _preview(run: Run) -> int:
    check_stack_file(run.stack_file)
    cli = require_pulumi(run, "preview")
    was_up = run.site.folder.site_file.exists()
    prepare(run)
    code = run_pulumi(run, cli, "preview", *policies(run.project, run.stack))
    if not was_up:
        report("the preview created nothing, but the site's processes are running: `down` stops them")
    return code


def _refresh(run: Run) -> int:
    check_stack_file(run.stack_file)
    cli = require_pulumi(run, "refresh")
    with cli.alone():
        prepare(run)
        return run_pulumi(run, cli, "refresh")


def _down(run: Run) -> int:
    if not run.stack_dir.is_dir():
        read_stack_file(run.stack_file)  # a mistyped name must not pass for a stack that is down already
    if not run.site.folder.root.is_dir() or not (run.site.folder.site_file.exists() or is_in_use(run.stack_dir)):
        report(f"there is no site in {run.site.folder.root}: nothing to do")
        return OK
    if is_in_use(run.stack_dir):
        cli = require_pulumi(run, "destroy")
        with cli.alone():
            # The cluster's daemon must delete what it created: its finalizers block the destroy until then.
            prepare(run, boot=True)
            if not _others(run) and not any(option.startswith(_PARTIAL) for option in run.pulumi_options):
                run.site.end_simulated_machines()  # no stack declares them, and a cluster with machines stays
            code = run_pulumi(run, cli, "destroy")
        if code != OK:
            return code
        if is_in_use(run.stack_dir):
            report("the site keeps running: the stack still has resources")
            return OK
    # Read again: of two stacks that end at the same time, the one that ends last stops the site.
    if others := _others(run):
        report(f"the site keeps running for stack {', '.join(others)}")
        return OK
    if left := run.site.left():
        # The user chose that they outlive the stack. `left` of a stopped site is empty: a second `down` deletes them.
        run.site.down(keep_data=True, tell=report)
        kept = "stopped the site and kept its data, because these are left"
        report(f"{kept}: {', '.join(left)}; run `down` again to delete them")
        return OK
    if (nothing := run.site.nothing_left()) is not None:
        report(nothing)
    run.site.down(tell=report)
    report("stopped the site and deleted its data")
    return OK


def _others(run: Run) -> list[str]:
    """The other stacks that the site holds; recorded stacks, in the same folder, have no copy."""
    held = (each for each in run.stack_dir.parent.glob("*") if copy_of(each).exists() and is_in_use(each))
    return sorted(each.name for each in held if each != run.stack_dir)


def _status(run: Run) -> int:
    status, outputs = run.site.status(), masked_outputs(run.stack_dir)
    clusters = cluster_status.clusters_status(cluster_access.admin_kubeconfigs(run.site.folder))
    if run.json:
        print(json.dumps({**status, "kubernetes": clusters, "outputs": outputs}, indent=2))
    else:
        print("\n".join([run.site.render(status, outputs), *cluster_status.render(clusters)]))
    return OK


def _access(run: Run) -> int:
    assert run.access is not None
    cluster_id = masked_outputs(run.stack_dir).get("clusterId")
    return cluster_access.run(run.access, run.site.folder, run.stack_dir, cluster_id)


def _pulumi(run: Run) -> int:
    read_stack_file(run.stack_file)  # a mistyped name makes no stack
    assert run.access is not None
    return on_stack(run.project, run.stack, run.stack_dir).command([*run.access.words], run.stack_file)


def _stop(run: Run) -> int:
    was_there = run.site.folder.site_file.exists()
    run.site.down(keep_data=True, tell=report)  # even without a site: a killed start may have left processes
    if was_there:
        report("stopped the site and kept its data; `up` starts it again")
    else:
        report(f"there is no site in {run.site.folder.root}: nothing to do")
    return OK


COMMANDS: Final[Mapping[str, Callable[[Run], int]]] = {
    "up": _up,
    "preview": _preview,
    "refresh": _refresh,
    "down": _down,
    "status": _status,
    "stop": _stop,
    "kubeconfig": _access,
    "kubectl": _access,
    "logs": _access,
    "pulumi": _pulumi,
}
