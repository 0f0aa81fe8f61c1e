"""What the Go controller left of each compared Service, as `aws_run` recorded it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
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
    results = expanded(recorded["results"])
    own = {case.name: _replaced(results[case.name], {word: own for own, word in _words(case)}) for case in CASES}
    return {**recorded, "results": results | own}


def write(versions: Mapping[str, str], results: Mapping[str, Json]) -> None:
    """Write what the peer did."""
    services = {case.name: digest(case) for case in CASES}
    alike = {case.name: _replaced(results[case.name], dict(_words(case))) for case in CASES}
    recorded = {"versions": versions, "services": services, "results": condensed({**results, **alike}, _MODELS)}
    _FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert read()["results"] == results


def digest(case: Case) -> str:
    """Of the Service that the peer was given: another one needs a record of its own."""
    return hashlib.sha256(json.dumps(manifest(case), sort_keys=True).encode()).hexdigest()[:16]


def _words(case: Case) -> Iterator[tuple[str, str]]:
    """What is the Service's alone, and what stands for it: all seem to be one Service with the same node ports."""
    yield f'"default/{case.name}"', '"default/SERVICE"'
    for place, port in enumerate(manifest(case)["spec"]["ports"]):
        yield str(port["nodePort"]), f"3999{place}"


def _replaced(result: Json, words: Mapping[str, str]) -> Json:
    """The result with other words in the place of these."""
    words_of_one = "|".join(rf"(?<!\d){re.escape(word)}(?!\d)" for word in words)
    told: Json = json.loads(re.sub(words_of_one, lambda found: words[found[0]], json.dumps(result)))
    return told
