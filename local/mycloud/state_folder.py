"""The layout of a site: the names of files and folders under its state folder, and its token."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from local.addresses import API_PORT, AddressBlock


def fingerprint(token: str) -> str:
    """Sixteen hex digits by which a site recognises its own API; the token is random, so they do not reveal it."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The layout of `docs/architecture.md`, section "A site"."""

    root: Path
    cloud_name: str = "mycloud"
    """The name of the folder with the cloud's own files."""

    @property
    def site_file(self) -> Path:
        """`site.json`: {`block`, `endpoint`}; the site has a block as long as it exists."""
        return self.root / "site.json"

    @property
    def cloud(self) -> Path:
        """The cloud's folder; private to the user."""
        return self.root / self.cloud_name

    @property
    def database(self) -> Path:
        return self.cloud / "mycloud.db"

    @property
    def token_file(self) -> Path:
        return self.cloud / "token"

    @property
    def controllers_token_file(self) -> Path:
        """The token that stacks give to their controllers, and its rights."""
        return self.cloud / "controllers-token.json"

    @property
    def boot_note(self) -> Path:
        """The computer's boot in which the API last ran."""
        return self.cloud / "boot_id"

    def process_record(self, name: str) -> Path:
        """The record of a process, see `local/processes.py`."""
        return self.cloud / "processes" / f"{name}.json"

    def log(self, name: str) -> Path:
        return self.cloud / "logs" / f"{name}.log"

    def cluster(self, id: str) -> Path:
        """PKI and etcd data of a cluster."""
        return self.cloud / "clusters" / id

    def machine(self, id: str) -> Path:
        """Credentials and pods of a machine."""
        return self.cloud / "machines" / id

    def volume(self, id: str) -> Path:
        """A volume's content."""
        return self.cloud / "volumes" / id

    def device(self, machine_id: str, volume_id: str) -> Path:
        """A machine's path to an attached volume."""
        return self.machine(machine_id) / "devices" / volume_id

    def stack(self, name: str) -> Path:
        """Engine state, passphrase and config copy of a stack."""
        return self.root / "stacks" / name

    def prepare(self) -> None:
        """Create the cloud's folder, readable only by its user."""
        self.cloud.mkdir(parents=True, exist_ok=True)
        self.cloud.chmod(0o700)

    def block(self) -> AddressBlock:
        """The site's address block; raises FileNotFoundError while it has none."""
        return AddressBlock(int(json.loads(self.site_file.read_text())["block"]))

    def write_site(self, block: AddressBlock) -> None:
        """Write the site's block, which determines its API's address."""
        write_private(self.site_file, json.dumps({"block": block.base, "endpoint": endpoint(block)}) + "\n")

    def token(self) -> str:
        """The API's bearer token; raises FileNotFoundError while there is none."""
        return self.token_file.read_text().strip()

    def fingerprint(self) -> str:
        """Identifies the API: `/healthz` returns it to everyone, and it does not reveal the token."""
        return fingerprint(self.token())

    def still_holds(self, site: str) -> bool:
        """Whether this is still the folder of the site with this fingerprint: neither deleted nor recreated by `up`."""
        try:
            return self.site_file.exists() and self.fingerprint() == site
        except FileNotFoundError:
            return False

    def ensure_token(self) -> str:
        """The API's bearer token, made at the first call."""
        if not self.token_file.exists():
            write_private(self.token_file, secrets.token_urlsafe(32) + "\n")
        return self.token()


def endpoint(block: AddressBlock) -> str:
    """The URL of the API of the site that has this block."""
    return f"http://{block.api_address}:{API_PORT}"


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its user may read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    temporary.replace(path)
