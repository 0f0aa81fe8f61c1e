"""The example of a program that uses the components as a library: run by the engine, with what the wheels hold."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "load-balancer-service"


def unpack_wheels(directory: Path) -> Path:
    """Build the wheels and unpack them as pip would; the folder to import from."""
    subprocess.run([ROOT / "tools" / "wheels", directory / "dist"], check=True, timeout=280)
    for wheel in (directory / "dist").glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(directory / "library")
    return directory / "library"


PASSPHRASE = "of-the-example"


def run_example(library: Path, state: Path, kubeconfig: str, *command: str) -> str:
    """Run the example's stack `dev` in a state folder of its own, with a copy of its file; what the engine prints."""
    state.mkdir(exist_ok=True)
    stack_file = state / "Pulumi.dev.yaml"
    if not stack_file.exists():
        shutil.copy(EXAMPLE / stack_file.name, stack_file)
        _run(library, state, "config", "set", "--secret", "kubeconfig", given=kubeconfig)
    return _run(library, state, *command)


def _run(library: Path, state: Path, *command: str, given: str = "") -> str:
    where = ["--cwd", str(EXAMPLE), "--stack", "dev", "--state", str(state)]
    done = subprocess.run(
        [sys.executable, "-m", "local.engine", *command, *where, "--config-file", str(state / "Pulumi.dev.yaml")],
        input=given,
        env={**os.environ, "PYTHONPATH": f"{library}:{ROOT}", "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE},
        cwd=state,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
