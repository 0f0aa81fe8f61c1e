"""The layout of a site's state folder, and the site's token."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from local.addresses import API_PORT, AddressBlock


def fingerprint(token: str) -> str:
    """Sixteen hex digits by which a site recognizes its own API; they do not reveal the random token."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The layout of `docs/architecture.md`, section "A site"."""

    root: Path
    cloud_name: str = "cloud"
    """The name of the folder with everything of the cloud."""

    @property
    def site_file(self) -> Path:
        """`site.json`: {`block`, `endpoint`}; while it exists, the site has a block."""
        return self.root / "site.json"

    @property
    def cloud(self) -> Path:
        """Everything of the cloud; private to the user."""
        return self.root / self.cloud_name

    @property
    def token_file(self) -> Path:
        return self.cloud / "token"

    def process_record(self, name: str) -> Path:
        """The record of a process (`local/processes.py`)."""
        return self.cloud / "processes" / f"{name}.json"

    def log(self, name: str) -> Path:
        return self.cloud / "logs" / f"{name}.log"

    def cluster(self, id: str) -> Path:
        """PKI and etcd data of a cluster."""
        return self.cloud / "clusters" / id

    def machine(self, id: str) -> Path:
        """Credentials and pods of a machine."""
        return self.cloud / "machines" / id

    def stack(self, name: str) -> Path:
        """What Pulumi's CLI has of a stack, its passphrase and the copy of its file."""
        return self.root / "stacks" / name

    def prepare(self) -> None:
        """Create the cloud's folder, private to the user."""
        self.cloud.mkdir(parents=True, exist_ok=True)
        self.cloud.chmod(0o700)

    def block(self) -> AddressBlock:
        """The site's address block. Raises FileNotFoundError while it has none."""
        return AddressBlock(int(json.loads(self.site_file.read_text())["block"]))

    def write_site(self, block: AddressBlock) -> None:
        """Record the site's block, and so the address of its API."""
        write_private(self.site_file, json.dumps({"block": block.base, "endpoint": endpoint(block)}) + "\n")

    def token(self) -> str:
        """The API's bearer token. Raises FileNotFoundError while there is none."""
        return self.token_file.read_text().strip()

    def fingerprint(self) -> str:
        """What `/healthz` reports, so that a site recognizes its own API; it does not reveal the token."""
        return fingerprint(self.token())

    def still_holds(self, site: str) -> bool:
        """Whether the folder still is that of the site with this fingerprint: neither deleted nor recreated by `up`."""
        try:
            return self.site_file.exists() and self.fingerprint() == site
        except FileNotFoundError:
            return False

    def ensure_token(self) -> str:
        """The API's bearer token, created by the first call."""
        if not self.token_file.exists():
            write_private(self.token_file, secrets.token_urlsafe(32) + "\n")
        return self.token()


def endpoint(block: AddressBlock) -> str:
    """The API's URL of the site with this block."""
    return f"http://{block.api_address}:{API_PORT}"


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file that only its user can read, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    temporary.replace(path)
