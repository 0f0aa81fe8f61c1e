"""The examples of programs that use the components as a library: run by Pulumi's CLI, with what the wheels hold."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.pulumi import toolchain
from local.pulumi.cli import write_kubernetes

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "load-balancer-service"


def built_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheels. The workers of a run share it."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if base.name.startswith("popen-") else base) / "wheels"
    directory.mkdir(exist_ok=True)
    dist = directory / "dist"
    with (directory / "building").open("a") as building:
        fcntl.flock(building, fcntl.LOCK_EX)
        if not dist.exists():
            subprocess.run([ROOT / "tools" / "wheels", directory / "new"], check=True, timeout=280)
            (directory / "new").rename(dist)
    return dist


def unpacked_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels as pip would unpack them; the folder to import from."""
    library = tmp_path_factory.mktemp("library")
    for wheel in built_wheels(tmp_path_factory).glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(library)
    return library


PASSPHRASE = "of-the-example"


def run_example(library: Path, state: Path, kubeconfig: str, *command: str) -> str:
    """Run the example `load-balancer-service`, as `Example` does, with this kubeconfig."""
    example = Example(EXAMPLE, library, state)
    if not state.exists():
        example.run("config", "set", "--secret", "kubeconfig", given=kubeconfig)
    return example.run(*command)


@dataclass(frozen=True)
class Example:
    """An example's stack `dev` in a state folder of its own, which has a copy of its files too."""

    folder: Path
    library: Path
    state: Path

    @property
    def stack_file(self) -> Path:
        return self.state / "Pulumi.dev.yaml"

    def run(self, *command: str, given: str = "") -> str:
        """Run Pulumi's CLI; what it prints. The test fails with the whole output if the CLI does."""
        if not (self.state / "Pulumi.yaml").exists():
            written = self.stack_file.read_text() if self.stack_file.exists() else None
            shutil.copytree(self.folder, self.state, dirs_exist_ok=True)
            if written is not None:
                self.stack_file.write_text(written)
            (self.state / "backend").mkdir()
            self._pulumi("stack", "init")
        return self._pulumi(*command, given=given)

    def _pulumi(self, *command: str, given: str = "") -> str:
        home = {}
        if (tools := toolchain.find(print)).is_official:
            # The user's own need not have the Kubernetes provider, and tests download nothing.
            home = {"PULUMI_HOME": str(self.state / "home")}
            write_kubernetes(tools, self.state / "home")
        done = subprocess.run(
            [sys.executable, "-m", "local.pulumi", *command, "--cwd", str(self.state), "--stack", "dev"],
            input=given,
            env={
                **os.environ,
                **home,
                "PYTHONPATH": f"{self.library}:{ROOT}",
                "PULUMI_BACKEND_URL": (self.state / "backend").as_uri(),
                "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
                "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                "PULUMI_SKIP_CONFIRMATIONS": "true",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
            },
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
