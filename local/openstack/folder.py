"""The folder layout of a site of OpenStack: each stack has a site, and services, of its own."""

from __future__ import annotations

from pathlib import Path

from local.state_folder import StateFolder


def site_root(state_dir: Path, stack: str) -> Path:
    """The folder of the stack's site, in the checkout's state folder."""
    return state_dir.absolute() / "openstack" / stack


def services(folder: StateFolder) -> Path:
    """The services' databases and logs."""
    return folder.cloud / "services"


def cluster_file(folder: StateFolder) -> Path:
    """The IDs of the cluster that the site prepared, and its application credential; private to the user."""
    return folder.cloud / "cluster.json"
