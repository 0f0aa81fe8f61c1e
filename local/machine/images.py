"""The images that a machine can run: each stands for a command of this project, run by the same Python."""

from __future__ import annotations

import sys
from dataclasses import dataclass

_REGISTRY = "registry.local"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the catalogue: its ENTRYPOINT and CMD."""

    entrypoint: tuple[str, ...]
    arguments: tuple[str, ...] = ()


_CATALOGUE = {
    "cloud-controller": Image((sys.executable, "-P", "-m", "cloud_controller.cli")),
    "web": Image((sys.executable, "-P", "-m", "local.machine.workloads.web")),
    "echo-udp": Image((sys.executable, "-P", "-m", "local.machine.workloads.echo_udp")),
}


def find_image(reference: str) -> Image | None:
    """The image of a reference (`registry.local/NAME:TAG`, any tag or digest), or None."""
    registry, slash, rest = reference.partition("/")
    name = rest.partition("@")[0].partition(":")[0]
    return _CATALOGUE.get(name) if slash and registry == _REGISTRY else None


def known_images() -> list[str]:
    """The available references, for error messages."""
    return [f"{_REGISTRY}/{name}:*" for name in _CATALOGUE]


def command_of(image: Image, command: list[str], args: list[str]) -> list[str]:
    """The arguments of the process: a container's `command` replaces ENTRYPOINT and CMD, its `args` only CMD."""
    if command:
        return [*command, *args]
    return [*image.entrypoint, *(args or image.arguments)]
