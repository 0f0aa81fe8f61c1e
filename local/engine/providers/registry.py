"""Provider instances of a run: made on first use from the resource that configures them, closed at the run's end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

from local.engine.stack.resource import ResourceState
from local.plugins.provider import Interruptible, Provider, ProviderError
from local.plugins.urn import package_of
from local.plugins.values import PropertyMap

OTHERS: Final = "*"
"""In place of a package's name: the provider of every package that has none."""
InstanceFactory = Callable[[ResourceState], Provider]
"""Makes a provider from its resource (`pulumi:providers:PACKAGE`), whose inputs are its configuration."""


class ProviderRegistry:
    """The factory of each package, and the instances made so far. Safe from several threads."""

    def __init__(self, factories: Mapping[str, InstanceFactory]) -> None:
        self._factories = dict(factories)
        self._instances: dict[tuple[str, str], Provider] = {}
        self._configured: dict[tuple[str, str], PropertyMap] = {}
        self._lock = threading.Lock()

    def check_known(self, package: str) -> None:
        """Raise ProviderError, naming the package, if it has no provider here."""
        if package not in self._factories and OTHERS not in self._factories:
            raise ProviderError(
                f"the embedded engine has no provider for package {package} (it has: "
                f"{', '.join(sorted(self._factories))}); use Pulumi's CLI"
            )

    def get(self, resource: ResourceState) -> Provider:
        """The instance of a provider resource; a changed configuration makes a new one."""
        key = (resource.urn, str(resource.id))
        package = package_of(resource.type)
        self.check_known(package)
        with self._lock:
            existing = self._instances.get(key)
            if existing is not None and self._configured[key] == resource.inputs:
                return existing
            if existing is not None:
                existing.close()
            made = (self._factories.get(package) or self._factories[OTHERS])(resource)
            self._instances[key] = made
            self._configured[key] = resource.inputs
            return made

    def interrupt(self) -> None:
        """End the waits of every instance."""
        with self._lock:
            for instance in self._instances.values():
                if isinstance(instance, Interruptible):
                    instance.interrupt()

    def close(self) -> None:
        """Close every instance."""
        with self._lock:
            for instance in self._instances.values():
                instance.close()
            self._instances.clear()
