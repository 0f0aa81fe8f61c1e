"""docs/daemon.md names each option that it explains as it really is."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from cloud_controller.cli import commands as cli
from cloud_controller.cli import upstream as cli_upstream

PAGE = (Path(__file__).parents[3] / "docs" / "daemon.md").read_text()


def test_every_documented_option_exists() -> None:
    main, _ = cli._parsers()
    [commands] = [each for each in main._actions if isinstance(each, argparse._SubParsersAction)]
    known = {option for parser in commands.choices.values() for option in parser._option_string_actions}

    named = {name for name in re.findall(r"`(--[a-z-]+)", PAGE) if not name.endswith("-")}

    assert named <= known


@pytest.mark.parametrize("flag", ["use-service-account-credentials", "allocate-node-cidrs", "enable-leader-migration"])
def test_every_unsupported_upstream_flag_in_the_docs_is_rejected_with_advice(flag: str) -> None:
    assert flag in cli_upstream.FLAGS
    assert f"`--{flag}`" in PAGE
