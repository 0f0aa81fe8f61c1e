"""Two readings of the CCM's metrics, a while apart: what grew in between is what happens now.

They are read through the API server's proxy where the pods serve them to everybody, otherwise from the pods themselves
with the caller's bearer token, as Prometheus does.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from cloud_controller.doctor.pod_http import ask_anew, port, serving
from cloud_controller.doctor.seen import Scrape, Seen, Unreadable
from cloud_controller.kube import Object, key

_TIMEOUT = 10.0

Labels = tuple[tuple[str, str], ...]
Samples = Mapping[tuple[str, Labels], float]
"""Values by series: its name and its labels, sorted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One pod's metrics, `seconds` apart."""

    pod: Object
    before: Samples
    after: Samples
    seconds: float

    def growth(self, suffix: str, prefix: str = "") -> dict[Labels, float]:
        """How much each series with such a name grew; one that began, or began anew, in between, from 0."""
        before = {series: value for series, value in self.before.items() if value <= self.after.get(series, 0.0)}
        return {
            labels: value - before.get((series, labels), 0.0)
            for (series, labels), value in self.after.items()
            if series.startswith(prefix) and series.endswith(suffix)
        }

    def now(self, series: str) -> dict[Labels, float]:
        """The later values of a series."""
        return {labels: value for (each, labels), value in self.after.items() if each == series}


def readings(seen: Seen) -> Iterable[Reading]:
    """Each pod's two readings, made once. Raises Unreadable."""
    return seen.once("scraped", lambda: _readings(seen))


def _readings(seen: Seen) -> list[Reading]:
    scrape = seen.scrape
    if scrape is None:
        raise Unreadable("it needs numbers: pass --scrape")
    pods = list(serving(seen))
    if not pods:
        raise Unreadable("no pod of the CCM runs whose metrics could be read")
    started = time.monotonic()
    before = [_read(seen, pod, scrape) for pod in pods]
    scrape.wait(scrape.between)
    seconds = max(time.monotonic() - started, scrape.between)
    return [Reading(pod, first, _read(seen, pod, scrape), seconds) for pod, first in zip(pods, before, strict=True)]


def _read(seen: Seen, pod: Object, scrape: Scrape) -> Samples:
    answer = ask_anew(seen, pod, "/metrics")
    if answer.status not in (200, 401, 403):
        raise Unreadable(f"cannot read /metrics of pod {key(pod)}: HTTP {answer.status}: {answer.text[:200]}")
    # The token goes to nobody but a pod that asks for one.
    text = answer.text if answer.status == 200 else _read_directly(seen, pod, scrape)
    try:
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise Unreadable(f"/metrics of pod {key(pod)} is not in Prometheus' text format") from error
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def _read_directly(seen: Seen, pod: Object, scrape: Scrape) -> str:
    address, token = pod["status"].get("podIP") or "", seen.kube().token()
    what = f"/metrics of pod {key(pod)} at {address}:{port(seen)}"
    if token is None:
        raise Unreadable(f"{what} needs a bearer token, and the kubeconfig has none")
    try:
        context = ssl.create_default_context(cafile=scrape.ca)
    except OSError as error:  # It does not name the file.
        raise OSError(error.errno, error.strerror, scrape.ca) from None
    if scrape.ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(address, port(seen), timeout=_TIMEOUT, context=context)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        body = response.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise Unreadable(f"cannot read {what}: {error}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise Unreadable(f"cannot read {what}: HTTP {response.status}: {body[:200]}")
    return body
