"""What a cloud offers to run its stacks on one machine: a descriptor, found by an entry point of `local.clouds`.

Every command and every plugin loads the descriptors: their modules import nothing heavy until called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloud_controller.registry import Registry
from local.errors import SiteError

if TYPE_CHECKING:
    from local.api_site import ApiSite
    from local.plugins.provider import ProviderFactory


def _never(state: Path, stack: str) -> bool:
    del state, stack
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCloud:
    """One cloud on this machine: its site, and what manages the resources of its Pulumi packages."""

    name: str
    """As `cloud` in a stack file; the entry point has the same name."""

    site: Callable[[Path, str, Mapping[str, Any]], ApiSite]
    """Makes the site of a stack from the state folder, the stack's name and the cloud's section of the stack file.

    The section is empty where the stack file cannot be read, as by `status` of a stack whose file is gone.
    """

    requires: Mapping[str, Any] = field(default_factory=dict)
    """The values that a stack's section must have for the site to serve the stack; other stacks are recorded."""

    has_site: Callable[[Path, str], bool] = _never
    """Whether the state folder holds a site of this stack's own."""

    is_default: bool = False
    """Whether commands use this site where neither a stack file nor a site of the stack's own names a cloud."""

    placeholders: Mapping[str, Any] = field(default_factory=dict)
    """What the site adds to a stack file, as values that lead nowhere: with them a stack is planned without a site."""

    providers: Mapping[str, ProviderFactory] = field(default_factory=dict)
    """What manages the resources of a Pulumi package, by the package's name; other packages are recorded."""

    def serves(self, section: Any) -> bool:
        """Whether the site stands in for the cloud of a stack with this section."""
        given = section if isinstance(section, dict) else {}
        return all(given.get(key) is value for key, value in self.requires.items())


CLOUDS: Final = Registry("local.clouds", LocalCloud)


def cloud_of_site(state: Path, stack: str) -> LocalCloud | None:
    """The cloud whose site of this stack's own is in the state folder."""
    return next((cloud for cloud in CLOUDS.all() if cloud.has_site(state, stack)), None)


def default_cloud() -> LocalCloud:
    """The cloud of the commands that nothing else names a cloud for. Raises SiteError if none is installed."""
    if cloud := next((each for each in CLOUDS.all() if each.is_default), None):
        return cloud
    raise SiteError("no cloud has a site on this machine: run `make set-up`, which installs the project's entry points")
