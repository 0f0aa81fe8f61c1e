"""The folder layout of a site of Alibaba Cloud: each stack on the stand-in has a site and an account of its own."""

from __future__ import annotations

from pathlib import Path

from local.state_folder import StateFolder


def site_root(state_dir: Path, stack: str) -> Path:
    """The folder of the stack's site, in the checkout's state folder."""
    return state_dir.absolute() / "alicloud" / stack


def database(folder: StateFolder) -> Path:
    """The account's contents."""
    return folder.cloud / "account.db"
