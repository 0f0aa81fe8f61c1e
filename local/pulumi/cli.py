"""Runs a stack of a site with Pulumi's CLI.

All data of the stack is in its folder in the site's state: the CLI's state in a file backend, the copy of the stack
file, the passphrase. A Pulumi.yaml beside them lets `pulumi stack` commands work on that copy; otherwise they would
write an encryptionsalt into the project's file.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from local.machine.processes import MARK, kill_leftovers
from local.plugins.launchers import installed, write_launchers
from local.pulumi import backend, kubernetes_provider, passphrase, toolchain
from local.pulumi.project import load_project
from local.pulumi.secrets import PASSPHRASE_VARIABLE
from local.pulumi.toolchain import Toolchain
from local.state_folder import write_private
from local.termination import Terminated

_OPERATIONS: Final = frozenset({"up", "preview", "refresh", "destroy"})


class PulumiCliError(Exception):
    """The CLI cannot run the stack; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PulumiCli:
    """The CLI on one stack: `project` is the program's folder, `stack_dir` the stack's."""

    tools: Toolchain
    project: Path
    stack: str
    stack_dir: Path

    @property
    def stack_file(self) -> Path:
        """The copy of the stack file, with the site's endpoint and token."""
        return self.stack_dir / f"Pulumi.{self.stack}.yaml"

    @property
    def _home(self) -> Path:
        """A PULUMI_HOME of the stack's own: its providers of clouds are ours."""
        return self.stack_dir / "home"

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment for the CLI: its backend and passphrase, and this Python's folder first on PATH."""
        found = {**inherited, **self.tools.variables}
        found["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), found.get("PATH", os.defpath)])
        found["PULUMI_HOME"] = str(self._home)
        found["PULUMI_BACKEND_URL"] = (self.stack_dir / backend.BACKEND_FOLDER).as_uri()
        found["PULUMI_STACK"] = self.stack
        found["PULUMI_SKIP_UPDATE_CHECK"] = "true"
        found["PULUMI_DIY_BACKEND_GZIP"] = "false"  # backend.py reads the state
        if PASSPHRASE_VARIABLE not in inherited:
            named = inherited.get(passphrase.FILE_VARIABLE)
            # Absolute: the CLI looks for it from `--cwd`.
            file = Path(named or self.stack_dir / passphrase.PASSPHRASE_FILE).absolute()
            found[passphrase.FILE_VARIABLE] = str(file)
        return found

    def operation(self, command: str, options: Sequence[str], *, asks: bool = False) -> list[str]:
        """The call for preview, up, refresh or destroy; `asks`: the CLI may ask before up and destroy.

        With `--json` it must not: its question would be mixed into the JSON.
        """
        only_shown = command == "preview" or "--preview-only" in options
        asking = only_shown or (asks and command != "refresh" and not {"--json", "-j"} & set(options))
        return [
            command,
            *("--stack", self.stack, "--cwd", str(self.project), "--config-file", str(self.stack_file)),
            *(() if asking else ("--yes",)),
            *options,
        ]

    def command(self, words: Sequence[str], source: Path) -> int:
        """Run any other command on the stack; its exit code. `config` works on `source`, the file that people write.

        Raises BuildError, PulumiCliError, StateError.
        """
        if words and words[0] in _OPERATIONS and "--help" not in words:
            instead = "down" if words[0] == "destroy" else words[0]
            raise PulumiCliError(f"`make {instead} STACK={self.stack}` does this with the stack's site and program")
        self._prepare()
        if backend.deployment(self.stack_dir) is None:
            self._create(os.environ)
        place = ["--cwd", str(self.stack_dir)]
        if words[:1] == ["config"]:
            place = ["--cwd", str(self.project), "--config-file", str(source.absolute())]
        return self._call([*words, *place], os.environ).returncode

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep out other runs that change the stack, and remove the locks of those that were killed on this machine.

        Raises PulumiCliError, which names a run that may be alive.
        """
        self.stack_dir.mkdir(parents=True, exist_ok=True)
        # The CLI's own lock begins only with its run; two runs must not both end what a third one left.
        with (self.stack_dir / "run.lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PulumiCliError(f"another run is changing stack {self.stack}: wait for it") from None
            locks = list(backend.locks(self.stack_dir))
            if living := next((lock for lock in locks if lock.alive), None):
                raise PulumiCliError(backend.held_by(living, self.stack))
            if locks:
                self._end_killed(locks)
            yield

    def _end_killed(self, locks: Sequence[backend.Lock]) -> None:
        # What that run started may still be at work: the server of dynamic resources never looks for the CLI.
        while kill_leftovers(self.stack_dir):
            continue
        done = self._call(["cancel", "--yes", "--cwd", str(self.stack_dir)], os.environ, capture=True)
        if done.returncode != 0:
            raise PulumiCliError(f"the lock of a killed run could not be removed: {done.stderr.strip()}")
        report(f"removed the lock of a run that was killed (process {', '.join(str(lock.pid) for lock in locks)})")

    def check_options(self, command: str, options: Sequence[str]) -> str:
        """What the CLI has against these options of a command; "" if it takes them. Nothing is started."""
        done = self._call([command, *options, "--help"], os.environ, capture=True)
        if done.returncode == 0:
            return ""
        return done.stderr.strip().removeprefix("error: ") or f"pulumi ended with code {done.returncode}"

    def run(self, command: str, options: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run preview, up, refresh or destroy; returns the CLI's exit code.

        Raises BuildError, PulumiCliError, SecretsError, StateError.
        """
        self._prepare()
        self._check_passphrase()
        if backend.deployment(self.stack_dir) is None:
            self._create(environment)
        asks = sys.stdin.isatty() and sys.stdout.isatty()
        call = self.operation(command, options, asks=asks)
        # A preview may run beside another run, and is not ended with what that one left.
        marked = environment if call[0] == "preview" else {**environment, MARK: str(self.stack_dir)}
        code = self._call(call, marked).returncode
        if created := backend.killed_creates(self.stack_dir):
            again = "" if command == "up" and code == 0 else "`up` makes it again, which finds what was made; then "
            clear = f'make refresh STACK={self.stack} ARGS="--skip-preview --clear-pending-creates"'
            report(f"a run was killed while it created {', '.join(created)}; {again}clear the pending create: {clear}")
        return code

    def _prepare(self) -> None:
        """Write the files that the CLI needs in the stack's folder."""
        if (self.stack_dir / "state.json").exists():
            raise PulumiCliError(
                f"{self.stack_dir}/state.json is the state of a release before Pulumi's CLI: destroy the stack with it "
                "(`make down`), or move it as CHANGELOG.md says; then remove the file"
            )
        (self.stack_dir / backend.BACKEND_FOLDER).mkdir(parents=True, exist_ok=True)
        write_kubernetes(self.tools, self._home)
        write_launchers(self._home, {name: each for name, each in installed().items() if name != "kubernetes"})
        manifest = yaml.safe_dump({"name": load_project(self.project).name, "runtime": "python"})
        write_private(self.stack_dir / "Pulumi.yaml", f"# For `pulumi stack` commands in this folder.\n{manifest}")

    def _create(self, environment: Mapping[str, str]) -> None:
        passphrase.passphrase_of(self.stack_dir, needed=False, create=True)
        # In the stack's own folder: this command may write the stack file.
        call = ["stack", "init", self.stack, "--non-interactive", "--cwd", str(self.stack_dir)]
        done = self._call(call, environment, capture=True)
        if done.returncode != 0:
            raise PulumiCliError(f"the Pulumi CLI could not create stack {self.stack!r}: {done.stderr.strip()}")

    def _check_passphrase(self) -> None:
        """Raise SecretsError if the passphrase does not match the CLI's state.

        The CLI's own error names neither the file nor a solution. The stack file was checked when its copy was written.
        """
        if (found := backend.salt(self.stack_dir)) is not None:
            place, salt = found
            given = passphrase.passphrase_of(self.stack_dir, needed=True, create=False)
            passphrase.crypter_of(self.stack_dir, given, salt, place)

    def _call(
        self, arguments: Sequence[str], inherited: Mapping[str, str], *, capture: bool = False
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.tools.pulumi), *arguments]
        environment = self.environment(inherited)
        if capture:
            return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        # A terminal's Ctrl-C reaches the CLI too, which asks there. Elsewhere it gets each signal from us, and once: it
        # takes a second one as "end at once".
        on_terminal = sys.stdin.isatty()
        with subprocess.Popen(command, env=environment, process_group=None if on_terminal else 0) as process:
            while True:
                try:
                    return subprocess.CompletedProcess(command, process.wait())
                except Terminated:
                    process.terminate()
                except KeyboardInterrupt:
                    # The CLI must end by itself, to complete the state.
                    if not on_terminal:
                        process.send_signal(signal.SIGINT)


def on_stack(project: Path, stack: str, stack_dir: Path) -> PulumiCli:
    """The machine's CLI on a stack; it is built if it is missing. Raises BuildError."""
    return PulumiCli(toolchain.find(report), project, stack, stack_dir)


def write_kubernetes(tools: Toolchain, home: Path) -> None:
    """Put the Kubernetes provider into a PULUMI_HOME: Pulumi's own if this machine has it, else ours."""
    version = installed()["kubernetes"]
    plugin = home / "plugins" / f"resource-kubernetes-v{version}" / "pulumi-resource-kubernetes"
    provider = kubernetes_provider.find(tools, report)
    if provider == plugin:
        return
    if provider is None:
        report("our own Kubernetes provider stands in for Pulumi's, which `make binaries` builds")
        write_launchers(home, {"kubernetes": version})
        return
    plugin.parent.mkdir(parents=True, exist_ok=True)
    new = plugin.with_name(f".{plugin.name}.{os.getpid()}")
    new.symlink_to(provider)
    new.replace(plugin)  # at once: another run may be starting it


def report(line: str) -> None:
    """Print a line about what the CLI needs."""
    print(f"pulumi: {line}", file=sys.stderr, flush=True)
