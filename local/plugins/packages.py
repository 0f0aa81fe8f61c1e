"""Which provider manages a package in a plugin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from local.clouds import CLOUDS
from local.plugins.launchers import DYNAMIC
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
