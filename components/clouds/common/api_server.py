"""The dynamic resource ApiServer: made once the API server of a cluster that runs itself answers.

Clouds return from the creation of a machine when it starts; Kubernetes is there minutes later, and whatever the program
makes in the cluster would fail until then. The provider is unpickled by reference: keep it importable here, without
attributes.
"""

from __future__ import annotations

import base64
import ssl
import time
import urllib.request
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, UpdateResult

from ...dynamic_provider import DynamicProvider, ForPeople

Properties = dict[str, Any]

DEADLINE = 1200.0
"""Seconds for the first machine to install Kubernetes and to begin the cluster."""
_PERIOD = 5.0


class NotReady(ForPeople, TimeoutError):
    """The API server did not answer in time; the message says why."""


class ApiServerProvider(DynamicProvider):
    """See the module. It only waits, and needs no credentials: `/readyz` is for everybody."""

    def diff(self, _id: str, olds: Properties, news: Properties) -> DiffResult:
        moved = olds.get("endpoint") != news.get("endpoint")
        return DiffResult(moved or olds.get("authority") != news.get("authority"), ["endpoint"] if moved else [])

    def create(self, props: Properties) -> CreateResult:
        wait(str(props["endpoint"]), str(props["authority"]), DEADLINE)
        return CreateResult(str(props["endpoint"]), props)

    def update(self, _id: str, _olds: Properties, news: Properties) -> UpdateResult:
        wait(str(news["endpoint"]), str(news["authority"]), DEADLINE)
        return UpdateResult(news)


def wait(endpoint: str, authority: str, deadline: float, period: float = _PERIOD) -> None:
    """Until `https://HOST:PORT` is ready. `authority`: base64 of PEM. Raises NotReady with the last reason."""
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    end = time.monotonic() + deadline
    while True:
        try:
            with urllib.request.urlopen(f"{endpoint}/readyz", context=context, timeout=10):
                return
        except OSError as error:  # urllib's errors are such: no route, no answer, not ready (500).
            if time.monotonic() + period > end:
                raise NotReady(f"the API server at {endpoint} is not ready after {deadline:.0f} s: {error}") from None
        time.sleep(period)


class ApiServer(Resource, module="cluster", name="ApiServer"):
    """The API server at `endpoint`, once it is ready. `authority`: its certificate authority, base64 of PEM."""

    def __init__(
        self,
        resource_name: str,
        *,
        endpoint: pulumi.Input[str],
        authority: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(ApiServerProvider(), resource_name, {"endpoint": endpoint, "authority": authority}, opts)
