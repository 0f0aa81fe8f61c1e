"""The layout of mycloud's state folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local.state_folder import StateFolder


@dataclass(frozen=True, slots=True)
class MyCloudFolder(StateFolder):
    """A site's folder with what mycloud alone keeps there."""

    cloud_name: str = "mycloud"

    @property
    def database(self) -> Path:
        return self.cloud / "mycloud.db"

    @property
    def controllers_token_file(self) -> Path:
        """The token that stacks give to their controllers, and the operations that it allows."""
        return self.cloud / "controllers-token.json"

    @property
    def boot_note(self) -> Path:
        """The boot of the computer in which the API last ran."""
        return self.cloud / "boot_id"

    def volume(self, id: str) -> Path:
        """The data of a volume."""
        return self.cloud / "volumes" / id

    def device(self, machine_id: str, volume_id: str) -> Path:
        """Where a machine sees an attached volume."""
        return self.machine(machine_id) / "devices" / volume_id
