"""The services' own environment: installed once per user from the lock beside this module, and cached."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from local.errors import Report
from local.go.modules import cache_directory
from local.one_process import alone

LOCK = Path(__file__).with_name("requirements.txt")


class EnvironmentFailed(Exception):
    """The services could not be installed, or their databases not be made; the message has the command's output."""


def ensure(report: Report) -> Path:
    """The interpreter that has the services. Installs them, if they are not there, in one to two minutes."""
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_directory() / "openstack" / digest
    python = home / "environment" / "bin" / "python"
    if (home / "installed").exists():
        return python
    with alone(home, "installing OpenStack's services", report):
        if not (home / "installed").exists():
            report("installing Keystone, Neutron, Octavia and Nova for tests, once per user (one to two minutes)")
            shutil.rmtree(home / "environment", ignore_errors=True)
            run(sys.executable, "-m", "venv", str(home / "environment"))
            install = ("install", "--quiet", "--no-deps", "--require-hashes", "--requirement", str(LOCK))
            if uv := shutil.which("uv"):
                run(uv, "pip", *install, "--python", str(python))
            else:
                run(str(python), "-m", "pip", *install)
            (home / "installed").touch()
    return python


def run(*command: str, env: dict[str, str] | None = None) -> None:
    """Run a command to its end. Raises EnvironmentFailed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=env)
    if done.returncode != 0:
        raise EnvironmentFailed(f"{' '.join(command)[:200]} failed:\n{done.stdout[-3000:]}")
