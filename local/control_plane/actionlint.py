"""Checks GitHub's workflows: `python -m local.control_plane.actionlint FILE...`.

actionlint comes from its Go module, once per machine, because its package on PyPI downloads the binary from elsewhere.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from local.errors import BuildError
from local.go.tool import GoTool

ACTIONLINT = GoTool(
    folder="actionlint",
    module="github.com/rhysd/actionlint",
    package="github.com/rhysd/actionlint/cmd/actionlint",
    takes="about a minute",
)


def main() -> NoReturn:
    """Become actionlint, with these arguments; the exit code is 1 if it cannot be built."""
    try:
        binary = ACTIONLINT.binary(lambda line: print(f"actionlint: {line}", file=sys.stderr, flush=True))
    except BuildError as error:
        sys.exit(f"error: {error}")
    # Further linters that happen to be on PATH would give each machine findings of its own.
    os.execv(binary, [str(binary), "-shellcheck=", "-pyflakes=", *sys.argv[1:]])


if __name__ == "__main__":
    main()
