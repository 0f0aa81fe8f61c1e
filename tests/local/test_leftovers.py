"""A killed test run does not use up addresses of later runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from local.addresses import BLOCK_BASES, AddressBlock
from local.blocks import BlockRegistry
from tests.leftovers import move_sites_of_ended_runs

BLOCK = AddressBlock(BLOCK_BASES[0])


def site_in(run: Path, registry: BlockRegistry) -> Path:
    """A site's folder with a block, among those of a pytest run."""
    site = run / "popen-gw0" / "site0"
    site.mkdir(parents=True)
    registry.reserve(BLOCK, site)
    return site


def registry_in(directory: Path) -> BlockRegistry:
    return BlockRegistry(directory / "blocks")


def ended_process() -> int:
    """The pid of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


@pytest.mark.integration
def test_the_site_of_a_killed_test_run_is_removed_and_its_block_freed(tmp_path: Path) -> None:
    registry = registry_in(tmp_path)
    run = tmp_path / "pytest-of-me" / "pytest-3"
    site = site_in(run, registry)
    (run / ".lock").write_text(str(ended_process()))

    assert move_sites_of_ended_runs(registry) == [site.with_name(f"site0-of-ended-run-{os.getpid()}")]

    assert not registry.owners()


def test_the_site_of_an_ended_test_run_is_removed(tmp_path: Path) -> None:
    registry = registry_in(tmp_path)
    site = site_in(tmp_path / "pytest-of-me" / "pytest-3", registry)

    assert move_sites_of_ended_runs(registry)

    assert not site.exists()


def test_the_site_of_a_live_test_run_stays(tmp_path: Path) -> None:
    registry = registry_in(tmp_path)
    run = tmp_path / "pytest-of-me" / "pytest-3"
    site = site_in(run, registry)
    (run / ".lock").write_text(str(os.getpid()))

    assert not move_sites_of_ended_runs(registry)

    assert registry.owners() == {BLOCK: site}


def test_a_users_own_site_stays() -> None:
    with tempfile.TemporaryDirectory() as directory:
        registry = registry_in(Path(directory))
        site = site_in(Path(directory) / "work", registry)

        assert not move_sites_of_ended_runs(registry)

        assert site.is_dir()
