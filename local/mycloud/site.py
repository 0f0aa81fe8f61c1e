"""A checkout's local site: its block of addresses and mycloud's API, started, found again, looked at and stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import urllib3

from cloud_controller.clouds.mycloud.permissions import globs
from local.api_site import ApiSite, SiteError, Tell, to_nobody, wait_until
from local.mycloud.models.compute import PROCESS_ENDED
from local.mycloud.revision import revision
from local.mycloud.status import site_objects
from local.mycloud.store import Store
from local.mycloud.suspension import suspend
from local.stack_copy import NAMESPACE, SiteConfig
from local.state_folder import StateFolder, write_private
from local.status_text import addresses, is_unchecked, render

ANSWER_SECONDS = 60.0
CHANGE_SECONDS = 30.0
CONTROLLERS_TOKEN_SECONDS = 365 * 24 * 60 * 60
"""The longest that mycloud gives; each `up` makes another once it is over."""

UNHEALTHY = "not every load balancer has a healthy backend yet; `status` shows which"

_OUTLIVING = {"cluster": "clusters", "load balancer": "load_balancers", "volume": "volumes"}
"""By kind: where the site's status has it."""


class Site(ApiSite):
    """The site of one state folder, with mycloud's API."""

    CLOUD = "mycloud"
    API_TITLE = "mycloud's API"
    API_MODULE = "local.mycloud"

    def __init__(self, state_dir: Path, *, registry: Path | None = None) -> None:
        super().__init__(StateFolder(state_dir.absolute()), registry=registry)

    def revision(self) -> str:
        """Of mycloud's API."""
        return revision()

    def suspend(self) -> None:
        """All that ran boots at the next `up`."""
        if self.folder.database.exists():
            with closing(Store(self.folder.database)) as store:
                suspend(store, "the site was stopped")

    def stack_config(self) -> SiteConfig:
        """Where the API is, the token for it, and that for the controllers."""
        where = {f"{NAMESPACE}:mycloud": {"endpoint": self.endpoint}}
        tokens = {"mycloudToken": self.token, "mycloudControllerToken": self.controllers_token()}
        return SiteConfig(where, {f"{NAMESPACE}:{key}": token for key, token in tokens.items()})

    def controllers_token(self) -> str:
        """What stacks give to their controllers: a token for what those call, and nothing else. Raises SiteError.

        It stays the same, or each `up` would restart the controllers; one that is not valid any more is replaced.
        """
        file, allowed = self.folder.controllers_token_file, globs()
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            kept = json.loads(file.read_text())
            if kept["operations"] == allowed and self._is_valid(kept["token"]):
                return str(kept["token"])
        asked = {"ttl_seconds": CONTROLLERS_TOKEN_SECONDS, "operations": allowed}
        made = self._change("POST", "/v1/admin/tokens", "the controllers' token could not be made", asked)
        write_private(file, json.dumps({"token": made["token"], "operations": allowed}))
        return str(made["token"])

    def wait_settled(self, seconds: float, tell: Tell = to_nobody) -> None:
        """Wait until no cluster and no machine is on its way, at most `seconds`; raises SiteError."""

        def pending() -> list[str]:
            objects = site_objects(self.folder.database)
            ended = self.ended_control_planes()
            # What was killed just now, and the API has not noticed yet.
            unnoticed = [each for each in objects["clusters"] if each["state"] == "available" and each["id"] in ended]
            unnoticed += [
                each
                for each in objects["machines"]
                if each["state"] == "running" and not each["simulated"] and self._process(each["id"]) is None
            ]
            return [
                *(
                    f"{each['id']} ({each['state']}{': ' + each['state_reason'] if each['state_reason'] else ''})"
                    for each in (*objects["clusters"], *objects["machines"])
                    if each["state"] in ("creating", "updating", "stopping", "deleting")
                ),
                *(f"{each['id']} ({each['state']}, but its process has ended)" for each in unnoticed),
            ]

        if not wait_until(lambda: not pending(), seconds, lambda: tell(f"waiting for {', '.join(pending())}")):
            raise SiteError(f"after {seconds:g} s this is still on its way: {', '.join(pending())}")

    def crashed_machines(self) -> list[str]:
        """The names of the machines that are stopped though nobody stopped them."""
        machines = site_objects(self.folder.database)["machines"]
        return [
            each["name"] for each in machines if (each["state"], each["state_reason"]) == ("stopped", PROCESS_ENDED)
        ]

    def boot_crashed_machines(self) -> None:
        """Start the machines that `crashed_machines` names; raises SiteError if the API refuses."""
        crashed = set(self.crashed_machines())
        for machine in site_objects(self.folder.database)["machines"]:
            if machine["name"] in crashed and machine["state"] == "stopped":
                self._change(
                    "POST", f"/v1/machines/{machine['id']}/start", f"machine {machine['id']} could not be started"
                )

    def end_simulated_machines(self) -> None:
        """Terminate the machines that tests and benchmarks made beside the real ones; raises SiteError."""
        self._change("DELETE", "/v1/admin/machines", "the simulated machines could not be ended")

    def wait_answering(self, seconds: float, cluster: str = "") -> bool:
        """Wait until every load balancer of the cluster that has backends can serve; whether that came about.

        Each of its backend sets needs one that is healthy, or that is not checked.
        """
        return wait_until(lambda: all(_answers(each) for each in self._balancers(cluster)), seconds)

    def after_up(self, cluster: str) -> list[str]:
        """How to see its load balancers at work."""
        answering = self.wait_answering(ANSWER_SECONDS, cluster)
        proxied = any(os.environ.get(name) for name in ("http_proxy", "all_proxy", "ALL_PROXY"))
        lines = []
        if commands := addresses(self._balancers(cluster), proxied=proxied):
            lines = ["", "Try it:"]
            for name, shown in commands.items():
                lines += [f"  {name}", *(f"    {command}" for command in shown)]
        return lines if answering else [*lines, UNHEALTHY]

    def left(self) -> list[str]:
        """What a destroy leaves only if it is told to."""
        if not self.is_running():
            return []
        status = self.status()
        return [
            f"{kind} {each['id']} ({each['name']})"
            for kind, collection in _OUTLIVING.items()
            for each in status.get(collection, [])
        ]

    def status(self) -> dict[str, Any]:
        """What runs where, as JSON has it."""
        if not self.folder.site_file.exists():
            return {"state_folder": str(self.folder.root), "up": False}
        healthy = self.is_healthy()
        objects = site_objects(self.folder.database) if self.folder.database.exists() else {}
        for balancer in objects.get("load_balancers", []):
            balancer["backends"] = self._get(f"/v1/load_balancers/{balancer['id']}/health") if healthy else None
        return {
            "state_folder": str(self.folder.root),
            "up": healthy,
            "block": self.block.base,
            "endpoint": self.endpoint,
            "processes": self.processes(),
            **objects,
        }

    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """The status as text."""
        return render(status, outputs)

    # -- helpers

    def _balancers(self, cluster: str) -> list[Any]:
        """The load balancers that Services of the cluster use; all where it is not known."""
        found = self.status()["load_balancers"]
        return [each for each in found if cluster in each.get("clusters", ())] if cluster else found

    def _is_valid(self, token: str) -> bool:
        with urllib3.PoolManager(retries=False, timeout=CHANGE_SECONDS) as pool:
            try:
                headers = {"Authorization": f"Bearer {token}"}
                url = f"{self.endpoint}/v1/access:check"
                return pool.request("POST", url, headers=headers, json={"operations": []}).status < 400
            except urllib3.exceptions.HTTPError as error:
                raise SiteError(f"the controllers' token could not be checked: {error}") from error

    def _get(self, path: str) -> Any:
        """A list of the API's, or None if it does not answer."""
        with urllib3.PoolManager(retries=False, timeout=5) as pool:
            try:
                answer = pool.request("GET", self.endpoint + path, headers={"Authorization": f"Bearer {self.token}"})
                return answer.json().get("items")
            except (urllib3.exceptions.HTTPError, ValueError):
                return None  # the API ended meanwhile

    def _change(self, method: str, path: str, failure: str, body: Any = None) -> Any:
        """Ask the API for a change, and return its answer; raises SiteError, with `failure` first, if it refuses."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with urllib3.PoolManager(retries=False, timeout=CHANGE_SECONDS) as pool:
            try:
                answer = pool.request(method, self.endpoint + path, headers=headers, json=body)
            except urllib3.exceptions.HTTPError as error:
                raise SiteError(f"{failure}: {error}") from error
        if answer.status >= 400:
            raise SiteError(f"{failure}: {answer.data.decode(errors='replace')}")
        return answer.json() if answer.data else None


def _answers(balancer: Mapping[str, Any]) -> bool:
    backends = balancer["backends"] or []
    by_set = {each["backend_set"]: False for each in backends}
    for each in backends:
        by_set[each["backend_set"]] |= each["healthy"] is True or is_unchecked(each)
    return balancer["state"] == "available" and all(by_set.values())
