"""The two measured controllers on AWS, with the same settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from benchmarks.aws.account import CREDENTIALS
from benchmarks.counts import Counting
from benchmarks.daemons import FLAGS, OURS_MODULE, Daemon, Files, ours
from benchmarks.daemons import running as running_any

Who = Literal["peer", "ours"]
PEER: Who = "peer"
OURS: Who = "ours"

# The peer's names of controllers are upstream's.
_CONTROLLERS = {"node": "cloud-node-controller", "service": "service-lb-controller"}
_ALIKE = ("--configure-cloud-routes=false", "--concurrent-service-syncs=4")


def command(
    who: Who, peer: Path, files: Files, controllers: Sequence[str], flags: Sequence[str], haste: int
) -> list[str]:
    """The command line of a controller. `peer`: the Go controller's binary; `haste`: see `fast_caches.py`."""
    if who == PEER:
        names = ",".join(_CONTROLLERS[name] for name in controllers)
        what = [f"--controllers={names}", "--authentication-skip-lookup", *files.flags, *FLAGS, *_ALIKE]
        return [str(peer), "--cloud-provider=aws", *what, *flags]
    module = OURS_MODULE if haste == 1 else ("-m", "benchmarks.aws.fast_caches", str(haste))
    return ours("aws", files, controllers, [*_ALIKE, *flags], module)


@contextmanager
def running(arguments: Sequence[str], simulator: Counting, log: Path) -> Iterator[Daemon]:
    """A controller, until the block ends."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    # Only the cloud config names AWS's endpoints, and there is no metadata service to wait for.
    environment |= CREDENTIALS | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    with running_any(arguments, environment, simulator, log) as daemon:
        yield daemon
