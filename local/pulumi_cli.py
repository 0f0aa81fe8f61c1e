"""Runs a stack with Pulumi's own CLI instead of the embedded engine (`make up ENGINE=pulumi`).

All data of the stack is in its folder in the site's state: the CLI's state in a file backend, the copy of the stack
file, the passphrase. A Pulumi.yaml beside them lets `pulumi stack` commands work on that copy; otherwise they would
write an encryptionsalt into the project's file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from local import pulumi_backend
from local.engine.stack.secrets import PASSPHRASE_VARIABLE
from local.engine.stack.session import PASSPHRASE_FILE, crypter_of, passphrase_of
from local.engine.termination import Terminated
from local.pulumi_backend import BACKEND_FOLDER
from local.state_folder import write_private


class PulumiCliError(Exception):
    """The CLI is missing or failed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PulumiCli:
    """The CLI on one stack: `project` is the program's folder, `stack_dir` the stack's."""

    project: Path
    stack: str
    stack_dir: Path

    @property
    def stack_file(self) -> Path:
        """The copy of the stack file, with the site's endpoint and token."""
        return self.stack_dir / f"Pulumi.{self.stack}.yaml"

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment for the CLI: its backend and passphrase, and this Python's folder first on PATH."""
        own = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", os.defpath)]),
            "PULUMI_BACKEND_URL": (self.stack_dir / BACKEND_FOLDER).as_uri(),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DIY_BACKEND_GZIP": "false",  # stack_state.py reads the state
        }
        if PASSPHRASE_VARIABLE not in inherited:
            named = inherited.get(f"{PASSPHRASE_VARIABLE}_FILE")
            # Absolute: the CLI looks for it from `--cwd`.
            own[f"{PASSPHRASE_VARIABLE}_FILE"] = str(Path(named or self.stack_dir / PASSPHRASE_FILE).absolute())
        return {**inherited, **own}

    def init(self) -> list[str]:
        """The call that creates the stack if needed. It runs in the stack's own folder: it may write the stack file."""
        return ["stack", "select", self.stack, "--create", "--non-interactive", "--cwd", str(self.stack_dir)]

    def operation(self, command: str, options: Sequence[str], *, asks: bool = False) -> list[str]:
        """The call for preview, up, refresh or destroy; `asks`: the CLI may ask before up and destroy.

        With `--json` it must not: its question would be mixed into the JSON.
        """
        asking = command == "preview" or (asks and command != "refresh" and not {"--json", "-j"} & set(options))
        return [
            command,
            *("--stack", self.stack, "--cwd", str(self.project), "--config-file", str(self.stack_file)),
            *(() if asking else ("--yes",)),
            *options,
        ]

    def require(self) -> str:
        """The path of the CLI. Raises PulumiCliError if it is not on PATH."""
        found = shutil.which("pulumi", path=os.environ.get("PATH", os.defpath))
        if found is None:
            raise PulumiCliError("the Pulumi CLI is not on PATH; install it, or omit ENGINE=pulumi")
        return found

    def prepare(self) -> None:
        """Write the files that the CLI needs in the stack's folder."""
        (self.stack_dir / BACKEND_FOLDER).mkdir(parents=True, exist_ok=True)
        name = yaml.safe_load((self.project / "Pulumi.yaml").read_text())["name"]
        manifest = yaml.safe_dump({"name": name, "runtime": "python"})
        write_private(self.stack_dir / "Pulumi.yaml", f"# For `pulumi stack` commands in this folder.\n{manifest}")

    def run(self, command: str, options: Sequence[str]) -> bool:
        """Run preview, up, refresh or destroy; returns whether it succeeded.

        Raises PulumiCliError, SecretsError, StateError.
        """
        pulumi = self.require()
        environment = self.environment(os.environ)
        self.prepare()
        self.check_passphrase()
        if _call([pulumi, *self.init()], environment) != 0:
            raise PulumiCliError(f"the Pulumi CLI could not create stack {self.stack!r}")
        asks = sys.stdin.isatty() and sys.stdout.isatty()
        done = _call([pulumi, *self.operation(command, options, asks=asks)], environment) == 0
        for line in pulumi_backend.ways_out(self.stack_dir):
            print(line, file=sys.stderr)
        return done

    def check_passphrase(self) -> None:
        """Raise SecretsError if the passphrase does not match the CLI's state.

        The CLI's own error names neither the file nor a solution. The stack file was checked when its copy was written.
        """
        found = pulumi_backend.checkpoint(self.stack_dir)
        if found is not None and (salt := pulumi_backend.salt(found[1]["deployment"])):
            passphrase = passphrase_of(self.stack_dir, needed=True, create=False)
            crypter_of(self.stack_dir, passphrase, salt, found[0])


def _call(command: Sequence[str], environment: Mapping[str, str]) -> int:
    process = subprocess.Popen(command, env=environment)
    while True:
        try:
            return process.wait()
        except Terminated:
            process.terminate()
        except KeyboardInterrupt:
            # The terminal's Ctrl-C also reached the CLI, which must end by itself to complete the state.
            continue
