"""A real Prometheus that scrapes a stack's daemons and its kube-controller-manager as a user's does."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cloud_controller.kube import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS, Kube
from cloud_controller.monitoring.alerts import JOB, groups
from cloud_controller.monitoring.manifests import Mode, Monitoring, make
from local.addresses import socket_address
from local.control_plane.prometheus import prometheus as binary
from local.ports import unused_address
from local.processes import log_tail
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "cloud_controller" / "monitoring" / "dashboard.json"
PORT = 9090

Series = tuple[Mapping[str, str], list[tuple[float, float]]]
"""Labels, and values by time."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running server, by its HTTP API."""

    url: str
    started: float
    """In Unix seconds."""

    def ask(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """The samples of an instant query: labels and value."""
        found = self._get("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def ask_range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """The series of a range query; times in Unix seconds."""
        found = self._get("query_range", query=expression, start=start, end=end, step=step)["result"]
        return [(each["metric"], [(at, float(value)) for at, value in each["values"]]) for each in found]

    def evaluated(self) -> bool:
        """Whether each rule has been evaluated. A rule that fails fails the test."""
        rules = [rule for group in self._get("rules")["groups"] for rule in group["rules"]]
        failed = [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule["health"] == "err"]
        assert not failed, failed
        return bool(rules) and all(rule["health"] == "ok" for rule in rules)

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        return {alert["labels"]["alertname"] for alert in self._get("alerts")["alerts"] if alert["state"] == "firing"}

    def has_fired(self, alert: str) -> bool:
        """Whether the alert fires, or did so since the server was started."""
        return bool(self.ask(f'last_over_time(ALERTS{{alertname="{alert}", alertstate="firing"}}[1h])'))

    def _get(self, path: str, **parameters: object) -> Any:
        try:
            with _open(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from None


@contextmanager
def prometheus(
    directory: Path, jobs: Mapping[str, Sequence[str]], token: str, rules: Mapping[str, Any]
) -> Iterator[Prometheus]:
    """A server that scrapes the targets of jobs (`host:port`) and evaluates the rules every second."""
    directory.mkdir()
    (directory / "rules.yml").write_text(yaml.safe_dump(rules))
    (directory / "prometheus.yml").write_text(yaml.safe_dump(_configuration(jobs, token)))
    address = f"{socket_address(unused_address((PORT,)))}:{PORT}"
    command = [
        str(binary()),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
    ]
    server = Prometheus(f"http://{address}", time.time())
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            eventually(lambda: _is_ready(server, process, directory / "log"), "Prometheus is ready")
            yield server
        finally:
            process.kill()


def alerts_in_a_thirtieth(provider: str) -> dict[str, Any]:
    """The project's rules, every time in them divided by thirty: a leader is missing for 10 s of its lease's 15."""
    return {"groups": groups(provider, scale=1 / 30)}


def token_to_scrape(kube: Kube) -> str:
    """The token of a ServiceAccount that has the rights which the project's manifests give Prometheus, and no other."""
    namespace, name = "default", "prometheus"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    kube.create(SERVICE_ACCOUNTS, account, namespace)
    made = make(Monitoring(mode=Mode.ANNOTATIONS, provider="mycloud", scraper=f"{namespace}/{name}"))
    for manifest in made:
        for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS):
            if manifest["kind"] == resource.kind:
                kube.create(resource, manifest)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = kube.create(SERVICE_ACCOUNTS, request, namespace, name=name, subresource="token")
    return str(answer["status"]["token"])


def without_answer(server: Prometheus) -> set[str]:
    """The panels of the stored dashboard with a query whose answer holds no number."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]
    assert queries
    return {title for title, expression in queries if not _has_answer(server, expression)}


def as_grafana_asks(expression: str, *, rate_interval: str, time_range: str) -> str:
    """The expression with its variables replaced."""
    values = {"$__rate_interval": rate_interval, "$__range": time_range, "$job": JOB, "$cluster": ".*"}
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    # `$1` is of label_replace.
    assert not re.search(r"\$\D", expression), f"a variable that Grafana does not know: {expression}"
    return expression


def _configuration(jobs: Mapping[str, Sequence[str]], token: str) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {
                "job_name": name,
                "scheme": "https",
                # A daemon signs its certificate itself.
                "tls_config": {"insecure_skip_verify": True},
                "authorization": {"credentials": token},
                "static_configs": [{"targets": list(targets)}],
            }
            for name, targets in jobs.items()
        ],
    }


def _has_answer(server: Prometheus, expression: str) -> bool:
    asked = as_grafana_asks(expression, rate_interval="1m", time_range="1h")
    # A quantile of nothing is NaN, and so is a share of nothing.
    return any(math.isfinite(value) for _, value in server.ask(asked))


def _is_ready(server: Prometheus, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, f"Prometheus has ended:\n{log_tail(log)}"
    try:
        with _open(f"{server.url}/-/ready"):
            return True
    except urllib.error.URLError:
        return False


def _open(url: str) -> Any:
    """Without a proxy, because it is loopback."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30)
