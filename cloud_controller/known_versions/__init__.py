"""What is known of versions of Kubernetes and of cloud controller managers (CCMs): until when they are supported, and
their vulnerabilities.

Others' facts, which change with time: `support.json` and `vulnerabilities.json`, each with its sources. `as_of` is the
day on which a file was last compared with them; whoever looks again sets it, changed or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from cloud_controller.clouds.common.versions import minor

FILES = ("support", "vulnerabilities")
UPSTREAM = "upstream"
_PLAIN = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_Version = tuple[int, int, int]


@cache
def load(name: str) -> dict[str, Any]:
    """The file's content."""
    found: dict[str, Any] = json.loads((files(__name__) / f"{name}.json").read_text())
    return found


def as_of(name: str) -> date:
    """The day on which the file was last compared with its sources."""
    return date.fromisoformat(load(name)["as_of"])


def supported_until(name: str, cloud: str) -> date | None:
    """The last day of support of a minor version; a cloud supports what it has no row for as long as upstream."""
    rows = load("support")["until"]
    found = rows.get(cloud, {}).get(name) or rows[UPSTREAM].get(name)
    return date.fromisoformat(found) if found else None


def support_problem(version: str, cloud: str, days: int, today: date) -> str | None:
    """What to say on `today` of a version that `cloud` (or `upstream`) runs, `days` before its support ends."""
    name = f"1.{minor(version)}"
    until = supported_until(name, cloud)
    if until is None:
        newest = next(iter(load("support")["until"][UPSTREAM]))
        return f"no date is known for the support of Kubernetes {name}; the newest known is {newest}"
    if until < today:
        return f"the support of Kubernetes {name} ended on {until}"
    return f"the support of Kubernetes {name} ends on {until}" if until - today <= timedelta(days) else None


def kubernetes_vulnerabilities(version: str) -> Iterator[str]:
    """What to say of each known vulnerability in this version of Kubernetes."""
    for entry in load("vulnerabilities")["entries"]:
        if entry["component"] == "kubernetes" and affects(entry, version):
            yield _described(entry, "Kubernetes", version)


def image_vulnerabilities(image: str) -> Iterator[str]:
    """What to say of each known vulnerability of the CCM in this image, by its tag."""
    name, _, tag = image.partition("@")[0].rpartition(":")
    for entry in load("vulnerabilities")["entries"]:
        if f"/{name}".endswith(f"/{entry['component']}") and affects(entry, tag):
            yield _described(entry, str(entry["component"]), tag)


def affects(entry: Mapping[str, Any], text: str) -> bool:
    """Whether the vulnerability is in this version; a vendor's build (1.34.1-vendor.1) may have the fix, or not."""
    version = _parsed(text)
    if version is None:
        return False
    if "versions" in entry:
        return version in map(_parsed, entry["versions"])
    introduced = _parsed(entry.get("introduced", "0.0.0"))
    fixed = sorted(filter(None, map(_parsed, entry["fixed"])))
    assert introduced is not None
    # Of a newer minor version than all of them, no patch is older than the first mended one.
    mended = next((each for each in fixed if each[:2] == version[:2]), fixed[0])
    return introduced <= version < mended


def _described(entry: Mapping[str, Any], what: str, version: str) -> str:
    fixed = f"mended in {', '.join(entry['fixed'])}" if "fixed" in entry else "no mended version is known"
    return f"{what} {version.removeprefix('v')} has {entry['id']} ({entry['summary']}; {fixed})"


def _parsed(text: str) -> _Version | None:
    found = _PLAIN.fullmatch(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
