"""Places a pod's volumes and logs where there are no mounts and no log service."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from local.machine.environment import rewrite_paths
from local.machine.processes import Command
from local.machine.volumes import Mount

SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
LOG_ROTATE_BYTES = 4 * 1024 * 1024


def without_mounts(command: Command, mounts: Sequence[Mount]) -> Command:
    """The command with the mount paths in its arguments and environment replaced by the volumes' real paths."""
    places = {mount.target: str(mount.source) for mount in mounts}
    argv = [rewrite_paths(word, places) for word in command.argv]
    env = {name: rewrite_paths(value, places) for name, value in command.env.items()}
    if SERVICE_ACCOUNT_DIRECTORY in places:  # clients hard-code it; ours takes it from here
        env["KUBERNETES_SERVICE_ACCOUNT_DIR"] = places[SERVICE_ACCOUNT_DIRECTORY]
    return Command(argv, env, command.cwd, command.log)


def rotate(log: Path) -> None:
    """Copy a large log and empty it in place, as its writer continues; lines written in between are lost."""
    if log.exists() and log.stat().st_size > LOG_ROTATE_BYTES:
        shutil.copyfile(log, log.with_name(log.name + ".1"))
        log.open("wb").close()
