"""Which provider manages a package in a plugin, and the launchers by which Pulumi's CLI finds the plugins."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local.clouds import CLOUDS
from local.errors import BuildError
from local.plugins.dynamic import PACKAGE as DYNAMIC
from local.plugins.provider import Provider, ProviderFactory
from local.plugins.recorder import Recorder, StandIn
from local.plugins.recorder_values import load_sdk
from local.plugins.values import UNKNOWN, PropertyMap

NOTICES: Final = {"kubernetes": "package kubernetes is managed by this project's own provider, not by Pulumi's"}
"""What users must know of a package's provider here."""


def factory_of(package: str) -> ProviderFactory:
    """What manages the package's resources: Kubernetes' and those of clouds on this machine, else a recorder."""
    if package == "kubernetes":
        return _kubernetes
    factory = _of_clouds().get(package, Recorder)

    def made(config: PropertyMap) -> Provider:
        load_sdk(package)
        return factory(config)

    return made


def offline_factory_of(package: str, python: str) -> ProviderFactory:
    """The same without any cloud or cluster: all is recorded, and previews know the simulated values.

    Dynamic resources and Kubernetes' objects are checked as by their own providers. `python` is the program's.
    """

    def made(config: PropertyMap) -> Provider:
        recorder = _recorder(package, config, python)
        recorder.foresees = True
        return recorder

    return made


def installed(python: str = sys.executable) -> dict[str, str]:
    """The versions of the packages whose SDKs an interpreter has. Raises BuildError."""
    code = "import json, sys; print(json.dumps(sys.path))"
    found = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise BuildError(f"{python} does not run: {found.stderr.strip()}")
    files = [file for folder in json.loads(found.stdout) for file in Path(folder).glob("pulumi_*/pulumi-plugin.json")]
    plugins = [json.loads(file.read_text()) for file in files]
    return {each["name"]: each["version"] for each in plugins if each.get("resource") and "version" in each}


def write_launchers(home: Path, versions: Mapping[str, str]) -> None:
    """Write the plugins of these packages, by name with the SDK's version, into a PULUMI_HOME."""
    for name, version in versions.items():
        _write_launcher(_in_cache(home, name, version), name)


def write_offline_launchers(home: Path, versions: Mapping[str, str], python: str) -> Path:
    """The same for a run that records everything. Returns the folder that must be first on PATH.

    It has the plugin of dynamic resources, which the CLI otherwise takes from its own folder. `python`: the program's.
    """
    for name, version in versions.items():
        _write_launcher(_in_cache(home, name, version), name, "--offline", python)
    first = home / "bin"
    _write_launcher(first / f"pulumi-resource-{DYNAMIC}", DYNAMIC, "--offline", python)
    return first


def _in_cache(home: Path, name: str, version: str) -> Path:
    return home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"


def _write_launcher(file: Path, *arguments: str) -> None:
    # Isolated: the modules of the program's folder must not replace ours.
    command = shlex.join([sys.executable, "-I", "-m", __package__, *arguments])
    script = f'#!/bin/sh\nexec {command} "$@"\n'
    if file.is_file() and not file.is_symlink() and file.read_text() == script:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    new.write_text(script)
    new.chmod(0o755)
    new.replace(file)  # at once: another run may be starting it


def _of_clouds() -> Mapping[str, ProviderFactory]:
    return {package: factory for cloud in CLOUDS.all() for package, factory in cloud.providers.items()}


def _kubernetes(config: PropertyMap) -> Provider:
    # Imported on use: other packages do not need it.
    from local.plugins.kubernetes.provider import KubernetesProvider

    return KubernetesProvider(config)


def _recorder(package: str, config: PropertyMap, python: str) -> Recorder:
    if package == "kubernetes":
        # Also with a kubeconfig that is in the program: no cluster is asked.
        return StandIn(_kubernetes({**config, "kubeconfig": UNKNOWN}), calls=False)
    if package == DYNAMIC:
        from local.plugins.dynamic import DynamicChecks, DynamicServer

        server = DynamicServer(Path.cwd(), os.environ.get("PULUMI_PROJECT", ""), print, python)
        return StandIn(DynamicChecks(server, config), calls=True)
    made = factory_of(package)({key: value for key, value in config.items() if key != "endpoints"})
    return made if isinstance(made, Recorder) else Recorder(config)
