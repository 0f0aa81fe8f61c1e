"""Plans a commit's stack with Pulumi's CLI, without its state, its secrets and the network: every package is recorded.

Providers that run here (Kubernetes, dynamic resources) still check inputs and say what a change replaces. Simulated
values are known in the plan, so that it holds the policies and addresses that are made of them; a second commit is
planned against the resources that an `up` of the first has recorded.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from cloud_stacks.outcome import Outcome, Problem, of_preview
from local.clouds import CLOUDS
from local.plugins.launchers import write_launchers
from local.pulumi.project import config_of, load_project, read_map
from local.pulumi.secrets import PassphraseCrypter, new_crypter
from local.pulumi.toolchain import Toolchain

PLACEHOLDER: Final = "[placeholder]"
"""Replaces each secret of a stack file."""
_PASSPHRASE: Final = "placeholder"
_KEPT: Final = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""What a program sees of the environment: the result is the same wherever a commit is planned, and no key is used."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit's project in a folder, and the Python with its requirements."""

    project: Path
    python: str


Pack = tuple[Path, Mapping[str, Any] | None]
"""A policy pack's folder and its configuration."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One stack in a folder of its own, which has the CLI's state of it."""

    tools: Toolchain
    stack: str
    folder: Path

    def preview(self, checkout: Checkout, packs: Sequence[Pack]) -> Outcome:
        """The plan of a commit from what the folder's state has. Raises ProjectError, OSError: wrong stack file."""
        events = self.folder / "events.jsonl"
        events.unlink(missing_ok=True)
        options = ["--json", "--event-log", str(events)]
        for index, (pack, config) in enumerate(packs):
            settings = self.folder / f"policies-{index}.json"
            settings.write_text(json.dumps(config or {}))
            options += ["--policy-pack", str(pack), "--policy-pack-config", str(settings)]
        done = self._run(checkout, "preview", *options)
        if not events.exists():
            return Outcome(self.stack, (), (), (Problem("error", done.stderr.strip() or done.stdout.strip()),))
        return of_preview(done.stdout, events.read_text(), self.stack)

    def up(self, checkout: Checkout) -> None:
        """Record the resources of a commit whose preview succeeded. Raises RehearsalError."""
        done = self._run(checkout, "up", "--yes", "--skip-preview", "--suppress-outputs", "--color", "never")
        if done.returncode != 0:
            raise RehearsalError(f"the resources of {self.stack} could not be recorded:\n{done.stdout[-2000:]}")

    def _run(self, checkout: Checkout, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        stack_file = self.folder / f"Pulumi.{self.stack}.yaml"
        _write_stack_file(checkout.project, self.stack, stack_file)
        environment = self._environment(checkout)
        if not (self.folder / "state" / ".pulumi").exists():
            self._create(checkout, environment)
        where = ["--stack", self.stack, "--cwd", str(checkout.project), "--config-file", str(stack_file)]
        return _call([str(self.tools.pulumi), command, *where, "--non-interactive", *options], environment)

    def _create(self, checkout: Checkout, environment: Mapping[str, str]) -> None:
        (self.folder / "state").mkdir()
        manifest = {"name": load_project(checkout.project).name, "runtime": "python"}
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump(manifest))
        create = ["stack", "init", self.stack, "--non-interactive", "--cwd", str(self.folder)]
        done = _call([str(self.tools.pulumi), *create], environment)
        if done.returncode != 0:
            raise RehearsalError(done.stderr.strip())

    def _environment(self, checkout: Checkout) -> dict[str, str]:
        launchers = self.folder / "launchers"
        if not launchers.exists():
            write_launchers(launchers, offline=True)
        found = {key: value for key, value in os.environ.items() if key in _KEPT} | dict(self.tools.variables)
        first = [str(launchers), str(Path(checkout.python).parent), found.get("PATH", os.defpath)]
        return {
            **found,
            "PATH": os.pathsep.join(first),
            # The commit's own modules come before those that are installed.
            "PYTHONPATH": str(checkout.project),
            "PULUMI_BACKEND_URL": (self.folder / "state").as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": _PASSPHRASE,
            "PULUMI_DEBUG_COMMANDS": "true",  # `--event-log` is one
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": str(self.folder / "home"),
            "PULUMI_SKIP_CHECKPOINTS": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }


class RehearsalError(Exception):
    """The CLI could not do what always works; the message has its own words."""


@contextmanager
def rehearsal(tools: Toolchain, stack: str) -> Iterator[Rehearsal]:
    """A folder for one stack, without resources yet."""
    with tempfile.TemporaryDirectory(prefix="cloud-stacks-") as folder:
        yield Rehearsal(tools, stack, Path(folder))


def placeholders(project: Path, stack: str) -> dict[str, Any]:
    """The config that only a site of this machine would add to the stack file. Raises ProjectError."""
    loaded = load_project(project)
    path = loaded.stack_file(stack)
    config = config_of(read_map(path), path, loaded.name)
    name = config.get(f"{loaded.name}:cloud")
    if name not in CLOUDS.names():
        return {}
    cloud = CLOUDS.get(str(name))
    if not cloud.serves(config.get(f"{loaded.name}:{name}")):
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


def _write_stack_file(project: Path, stack: str, target: Path) -> None:
    """The commit's stack file with placeholders of secrets and endpoints. Raises ProjectError."""
    loaded = load_project(project)
    source = read_map(loaded.stack_file(stack))
    crypter = _crypter()
    config = {**config_of(source, loaded.stack_file(stack), loaded.name), **placeholders(project, stack)}
    hidden = {key: _hidden(value, crypter) for key, value in config.items()}
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


def _call(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
