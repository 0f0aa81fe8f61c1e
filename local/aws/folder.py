"""The folder layout of an AWS site: each stack on a simulated AWS has a site, and so an account, of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from local.state_folder import StateFolder, write_private

WEBHOOK_PORT: Final = 7443
"""Of the token webhook, on the API's address."""


def site_root(state_dir: Path, stack: str) -> Path:
    """The folder of the stack's site, in the checkout's state folder."""
    return state_dir.absolute() / "aws" / stack


def aws_folder(root: Path) -> StateFolder:
    """The layout of that folder."""
    return StateFolder(root.absolute())


def state_file(folder: StateFolder) -> Path:
    """The account's contents."""
    return folder.cloud / "moto.pickle"


def webhook_folder(folder: StateFolder) -> Path:
    """The token webhook's keys."""
    return folder.cloud / "webhook"


def write_credentials(folder: StateFolder, access_key: str, secret_key: str) -> None:
    """Store the key with which the stack signs its calls."""
    write_private(_credentials(folder), json.dumps({"access_key": access_key, "secret_key": secret_key}) + "\n")


def credentials(folder: StateFolder) -> tuple[str, str]:
    """Access key and secret; raises FileNotFoundError while there is no site."""
    content = json.loads(_credentials(folder).read_text())
    return content["access_key"], content["secret_key"]


def _credentials(folder: StateFolder) -> Path:
    return folder.cloud / "credentials.json"
