"""Sources that several entries of NLB's catalogue share."""

from __future__ import annotations

from typing import Any

from cloud_controller.clouds.alicloud.annotation_entries import LISTS, PEER
from cloud_controller.clouds.alicloud.annotation_entries import entry as _entry
from cloud_controller.load_balancers.catalogue import Annotation

SEED = "requirements 002, section 4.4.1"
API = "NLB API of 2022-04-30"
LISTED = f"{LISTS}; {PEER}"


def entry(name: str, kind: str, sets: str, description: str, **more: Any) -> Annotation:
    """An entry whose source is the requirements, unless `source` says otherwise."""
    return _entry(name, kind, sets, description, **{"source": f"{SEED}; {PEER}", **more})
