"""Runs a stack by Pulumi's CLI without its state, its secrets and a cloud: every package is recorded.

Providers that run here (Kubernetes, dynamic resources) still check inputs and say what a change replaces. Simulated
values are known in a preview, so that it holds the policies and addresses that are made of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from local.clouds import CLOUDS
from local.plugins.launchers import installed, write_offline_launchers
from local.plugins.values import PLACEHOLDER
from local.pulumi.project import config_of, load_project, read_map
from local.pulumi.secrets import PassphraseCrypter, new_crypter
from local.pulumi.toolchain import Toolchain

_PASSPHRASE: Final = "placeholder"
_KEPT: Final = (
    *("LANG", "LC_ALL", "PATH", "TERM", "TMPDIR"),
    *("GITHUB_ACTIONS", "GITLAB_CI", "NO_COLOR"),
)
"""What a program sees of the environment: the result is the same wherever a stack is planned, and no key is used."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit's project in a folder, and the Python with its requirements."""

    project: Path
    python: str = sys.executable
    stack_file: Path | None = None
    """If it is not the project's own."""


class RehearsalError(Exception):
    """The CLI could not do what always works, or was ended; the message says which."""


class Runs:
    """The CLI's runs of several rehearsals, which end together. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def run(
        self, call: Sequence[str], environment: Mapping[str, str], *, capture: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run the CLI to its end. Raises RehearsalError after `end`."""
        pipe = subprocess.PIPE if capture else None
        with self._lock:
            if self._ended:
                raise RehearsalError("ended before it was planned")
            process = subprocess.Popen(call, env=environment, stdout=pipe, stderr=pipe, text=True)
            self._running.add(process)
        try:
            output, errors = process.communicate()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        return subprocess.CompletedProcess(call, process.returncode, output, errors)

    def end(self) -> None:
        """End what runs, and begin nothing more."""
        with self._lock:
            self._ended = True
            for process in self._running:
                process.terminate()


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One stack in a folder of its own, which has the CLI's state of it."""

    tools: Toolchain
    stack: str
    folder: Path
    runs: Runs = field(default_factory=Runs)

    def preview(self, checkout: Checkout, *options: str, capture: bool = True) -> subprocess.CompletedProcess[str]:
        """Preview a commit from what is loaded. Raises ProjectError, RehearsalError, OSError."""
        stack_file = self.folder / f"Pulumi.{self.stack}.yaml"
        _write_stack_file(checkout, self.stack, stack_file)
        environment = self.environment(checkout)
        if not (self.folder / "state").exists():
            (self.folder / "state").mkdir()
            manifest = {"name": load_project(checkout.project).name, "runtime": "python"}
            (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(manifest))
            self._run(environment, "stack", "init", self.stack)
        where = ["--stack", self.stack, "--cwd", str(checkout.project), "--config-file", str(stack_file)]
        call = [str(self.tools.pulumi), "preview", *where, *options]
        return self.runs.run(call, environment, capture=capture)

    def load(self, checkout: Checkout, resources: Sequence[Any]) -> None:
        """Put resources, as `stack export` has them, into the state that a preview has made. Raises RehearsalError."""
        file = self.folder / "deployment.json"
        deployment = {
            "manifest": {"time": "2020-01-01T00:00:00Z", "magic": "", "version": ""},
            "secrets_providers": {"type": "passphrase", "state": {"salt": _crypter().salt}},
            "resources": resources,
        }
        file.write_text(json.dumps({"version": 3, "deployment": deployment}))
        self._run(self.environment(checkout), "stack", "import", "--stack", self.stack, "--file", str(file))

    def _run(self, environment: Mapping[str, str], *command: str) -> None:
        """Run a command of `pulumi stack` in the folder, where it may write the stack file."""
        call = [str(self.tools.pulumi), *command, "--non-interactive", "--cwd", str(self.folder)]
        done = self.runs.run(call, environment)
        if done.returncode != 0:
            raise RehearsalError(f"pulumi {command[0]} {command[1]} of {self.stack} failed: {done.stderr.strip()}")

    def environment(self, checkout: Checkout) -> dict[str, str]:
        """The variables of the CLI, and so of the program and its policy packs. Writes the launchers that they name."""
        home = self.folder / "home"
        first = write_offline_launchers(home, installed(checkout.python), checkout.python)
        found = {key: value for key, value in os.environ.items() if key in _KEPT} | dict(self.tools.variables)
        python = Path(checkout.python).parent
        return {
            **found,
            "HOME": str(self.folder),  # the user's has keys
            "PATH": os.pathsep.join([str(first), str(python), *_without_plugins(found.get("PATH", os.defpath))]),
            # The commit's own modules come before those that are installed.
            "PYTHONPATH": str(checkout.project),
            "PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
            "PULUMI_DEBUG_COMMANDS": "true",  # `--event-log` is one
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }


def _without_plugins(path: str) -> list[str]:
    """The folders of PATH without those that have providers, which the CLI would prefer to recorders."""
    own = {"pulumi-resource-pulumi-python", "pulumi-resource-pulumi-nodejs"}
    folders = path.split(os.pathsep)
    return [each for each in folders if {file.name for file in Path(each).glob("pulumi-resource-*")} <= own]


def placeholders(config: Mapping[str, Any], project: str) -> dict[str, Any]:
    """The config that only a site of this machine would add to a stack's, which is by full key."""
    name = config.get(f"{project}:cloud")
    if name not in CLOUDS.names():
        return {}
    cloud = CLOUDS.get(str(name))
    if not cloud.serves(config.get(f"{project}:{name}")):
        return {}
    added = {}
    for key, value in cloud.placeholders.items():
        found = config.get(key)
        if found is None:
            added[key] = value
        elif isinstance(found, dict) and "secure" not in value and not value.keys() & found.keys():
            # A section with some of these keys belongs to a cloud of its own, which no site completes.
            added[key] = {**value, **found}
    return added


def _write_stack_file(checkout: Checkout, stack: str, target: Path) -> None:
    """The commit's stack file with placeholders of secrets and endpoints. Raises ProjectError."""
    project = load_project(checkout.project)
    path = checkout.stack_file or project.stack_file(stack)
    source = read_map(path)
    config = config_of(source, path, project.name)
    crypter = _crypter()
    hidden = {key: _hidden(value, crypter) for key, value in {**config, **placeholders(config, project.name)}.items()}
    target.write_text(yaml.safe_dump({**source, "encryptionsalt": crypter.salt, "config": hidden}))


def _hidden(value: Any, crypter: PassphraseCrypter) -> Any:
    if isinstance(value, dict):
        if set(value) == {"secure"}:
            return {"secure": crypter.encrypt(PLACEHOLDER)}
        return {key: _hidden(each, crypter) for key, each in value.items()}
    return [_hidden(each, crypter) for each in value] if isinstance(value, list) else value


@cache
def _crypter() -> PassphraseCrypter:
    return new_crypter(_PASSPHRASE)
