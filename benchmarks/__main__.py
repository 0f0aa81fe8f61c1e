"""Runs the benchmarks: `python -m benchmarks [NAME]`; one JSON object a line on stdout, all else on stderr."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Protocol, cast

from benchmarks.figure import Figure

# name -> module; a module has `measure() -> Figure`, and is imported only when it runs.
BENCHMARKS = {
    "control-plane-ready": "benchmarks.control_plane_ready",
    "up-local": "benchmarks.up_local",
    "preview-local": "benchmarks.preview_local",
}


class Benchmark(Protocol):
    def measure(self) -> Figure: ...


def main(arguments: list[str] | None = None) -> int:
    """Run the named benchmark, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    options = parser.parse_args(arguments)
    for name in [options.name] if options.name else BENCHMARKS:
        benchmark = cast(Benchmark, importlib.import_module(BENCHMARKS[name]))
        print(benchmark.measure().to_json(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
