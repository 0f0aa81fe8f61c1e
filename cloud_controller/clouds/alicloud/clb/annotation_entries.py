"""Sources and limits that several entries of CLB's catalogue share."""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.alicloud.annotation_entries import LISTS, PEER
from cloud_controller.clouds.alicloud.annotation_entries import entry as _entry
from cloud_controller.load_balancers.catalogue import Annotation

SEED = "requirements 002, section 4.3.1"
LISTED = f"{LISTS}; {PEER}"

TCP = "every TCP listener"
TCP_UDP = "every TCP and UDP listener"
HTTP = "every HTTP and HTTPS listener"
HTTPS = "every HTTPS listener"
EVERY = "every listener"


def entry(name: str, kind: str, sets: str, description: str, **more: Any) -> Annotation:
    """An entry whose source is the requirements, unless `source` says otherwise."""
    return _entry(name, kind, sets, description, **{"source": f"{SEED}; {PEER}", **more})
