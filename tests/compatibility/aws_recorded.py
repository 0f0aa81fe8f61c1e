"""What the Go controller left of each compared Service, as `aws_run` recorded it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from tests.compatibility.alike import condensed, expanded
from tests.compatibility.aws_services import CASES, Case, manifest
from tests.compatibility.differences import Json

_FILE = Path(__file__).with_name("aws_peer.json")
_MODELS = {"classic-": "classic-plain", "nlb-": "nlb-plain"}
"""The results of which others are written as changes, by the beginning of their names."""


def read() -> Json:
    """`versions`, `services` (of each its digest) and `results`."""
    recorded: Json = json.loads(_FILE.read_text())
    return {**recorded, "results": expanded(recorded["results"])}


def write(versions: Mapping[str, str], results: Mapping[str, Json]) -> None:
    """Write what the peer did."""
    services = {case.name: digest(case) for case in CASES}
    recorded = {"versions": versions, "services": services, "results": condensed(results, _MODELS)}
    _FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


def digest(case: Case) -> str:
    """Of the Service that the peer was given: another one needs a record of its own."""
    return hashlib.sha256(json.dumps(manifest(case), sort_keys=True).encode()).hexdigest()[:16]
