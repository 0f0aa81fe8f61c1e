"""The site of mycloud, which all stacks of a checkout on mycloud share."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from urllib3 import BaseHTTPResponse

from cloud_controller.clouds.mycloud.permissions import globs
from local.api_site import ApiSite, SiteConfig
from local.errors import SiteError
from local.http_client import HttpError, request
from local.mycloud.folder import MyCloudFolder
from local.mycloud.models.compute import PROCESS_ENDED
from local.mycloud.revision import revision
from local.mycloud.status import site_objects
from local.mycloud.status_text import addresses, is_unchecked, render
from local.mycloud.store import Store
from local.mycloud.suspension import suspend
from local.stack_file import NAMESPACE
from local.state_folder import write_private
from local.waiting import wait_until

ANSWER_SECONDS = 60.0
CHANGE_SECONDS = 30.0
CONTROLLERS_TOKEN_SECONDS = 90 * 24 * 60 * 60
"""The longest that the policies accept; an `up` replaces an expired token."""

UNHEALTHY = "some load balancers have no healthy backend yet; `status` shows which"

_OUTLIVING = {"cluster": "clusters", "load balancer": "load_balancers", "volume": "volumes"}
"""The kinds that may outlive a stack, and their keys in the site's status."""


class Site(ApiSite):
    """The site of one state folder, with mycloud's API."""

    CLOUD = "mycloud"
    API_TITLE = "mycloud's API"
    API_MODULE = "local.mycloud"

    folder: MyCloudFolder

    def __init__(self, state_dir: Path, *, registry: Path | None = None) -> None:
        super().__init__(MyCloudFolder(state_dir.absolute()), registry=registry)

    def revision(self) -> str:
        """The revision of mycloud's API."""
        return revision()

    def suspend(self) -> None:
        """Everything that was running boots at the next `up`."""
        if self.folder.database.exists():
            with closing(Store(self.folder.database)) as store:
                suspend(store, "the site was stopped")

    def stack_config(self) -> SiteConfig:
        """The API's endpoint and token, and the token for the controllers."""
        token, expires = self.controllers_token()
        where = {f"{NAMESPACE}:mycloud": {"endpoint": self.endpoint, "tokenExpires": expires}}
        tokens = {"mycloudToken": self.token, "mycloudControllerToken": token}
        return SiteConfig(where, {f"{NAMESPACE}:{key}": token for key, token in tokens.items()})

    def controllers_token(self) -> tuple[str, str]:
        """The token that stacks give to their controllers, and its last day (YYYY-MM-DD). Raises SiteError.

        It is for the operations that they call only.

        It is kept while it is valid: a new one would restart the controllers at each `up`.
        """
        file, allowed = self.folder.controllers_token_file, globs()
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            kept = json.loads(file.read_text())
            if kept["operations"] == allowed and self._is_valid(kept["token"]):
                return str(kept["token"]), str(kept["last_day"])
        asked = {"ttl_seconds": CONTROLLERS_TOKEN_SECONDS, "operations": allowed}
        made = self._change("POST", "/v1/admin/tokens", "could not create the controllers' token", asked)
        found = {"token": str(made["token"]), "last_day": str(made["expires_at"]).partition("T")[0]}
        write_private(file, json.dumps({**found, "operations": allowed}))
        return found["token"], found["last_day"]

    def pending(self) -> list[str]:
        """The clusters and machines that are changing."""
        objects = site_objects(self.folder.database)
        ended = self.ended_control_planes()
        # Killed just now, and not noticed by the API yet.
        unnoticed = [each for each in objects["clusters"] if each["state"] == "available" and each["id"] in ended]
        unnoticed += [
            each
            for each in objects["machines"]
            if each["state"] == "running" and not each["simulated"] and self.api.find(each["id"]) is None
        ]
        return [
            *(
                f"{each['id']} ({each['state']}{': ' + each['state_reason'] if each['state_reason'] else ''})"
                for each in (*objects["clusters"], *objects["machines"])
                if each["state"] in ("creating", "updating", "stopping", "deleting")
            ),
            *(f"{each['id']} ({each['state']}, but its process has ended)" for each in unnoticed),
        ]

    def crashed_machines(self) -> list[str]:
        """The names of the machines that stopped because their process ended."""
        machines = site_objects(self.folder.database)["machines"]
        return [
            each["name"] for each in machines if (each["state"], each["state_reason"]) == ("stopped", PROCESS_ENDED)
        ]

    def boot_crashed_machines(self) -> None:
        """Start the machines that `crashed_machines` names. Raises SiteError if the API refuses."""
        crashed = set(self.crashed_machines())
        for machine in site_objects(self.folder.database)["machines"]:
            if machine["name"] in crashed and machine["state"] == "stopped":
                self._change("POST", f"/v1/machines/{machine['id']}/start", f"could not start machine {machine['id']}")

    def end_simulated_machines(self) -> None:
        """Terminate the machines that tests and benchmarks created beside the real ones. Raises SiteError."""
        self._change("DELETE", "/v1/admin/machines", "could not terminate the simulated machines")

    def wait_answering(self, seconds: float, cluster: str = "") -> bool:
        """Wait until the cluster's load balancers that have backends can serve; whether they can.

        Each of their backend sets needs a backend that is healthy or not checked.
        """
        return wait_until(lambda: all(_answers(each) for each in self._balancers(cluster)), seconds)

    def after_up(self, cluster: str) -> list[str]:
        """Commands that call its load balancers."""
        answering = self.wait_answering(ANSWER_SECONDS, cluster)
        proxied = any(os.environ.get(name) for name in ("http_proxy", "all_proxy", "ALL_PROXY"))
        lines = []
        if commands := addresses(self._balancers(cluster), proxied=proxied):
            lines = ["", "Try it:"]
            for name, shown in commands.items():
                lines += [f"  {name}", *(f"    {command}" for command in shown)]
        return lines if answering else [*lines, UNHEALTHY]

    def left(self) -> list[str]:
        """What a destroy leaves only on request."""
        if not self.is_running():
            return []
        status = self.status()
        return [
            f"{kind} {each['id']} ({each['name']})"
            for kind, collection in _OUTLIVING.items()
            for each in status.get(collection, [])
        ]

    def objects(self, *, healthy: bool) -> dict[str, Any]:
        """As the database has them, so without the API, too; the health of backends is the API's."""
        objects = site_objects(self.folder.database) if self.folder.database.exists() else {}
        for balancer in objects.get("load_balancers", []):
            balancer["backends"] = self._get(f"/v1/load_balancers/{balancer['id']}/health") if healthy else None
        return objects

    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """The status as text."""
        return render(status, outputs)

    # -- helpers

    def _balancers(self, cluster: str) -> list[Any]:
        """The load balancers that Services of the cluster use; all of them for an unknown cluster."""
        found = self.status()["load_balancers"]
        return [each for each in found if cluster in each.get("clusters", ())] if cluster else found

    def _is_valid(self, token: str) -> bool:
        try:
            return self._call("POST", "/v1/access:check", token, CHANGE_SECONDS, {"operations": []}).status < 400
        except HttpError as error:
            raise SiteError(f"could not check the controllers' token: {error}") from error

    def _get(self, path: str) -> Any:
        """A list from the API; None if it does not answer."""
        try:
            return self._call("GET", path, self.token, 5).json().get("items")
        except (HttpError, ValueError):
            return None  # the API ended meanwhile

    def _change(self, method: str, path: str, failure: str, body: Any = None) -> Any:
        """Call the API and return its answer. Raises SiteError, beginning with `failure`, if it refuses."""
        try:
            answer = self._call(method, path, self.token, CHANGE_SECONDS, body)
        except HttpError as error:
            raise SiteError(f"{failure}: {error}") from error
        if answer.status >= 400:
            raise SiteError(f"{failure}: {answer.data.decode(errors='replace')}")
        return answer.json() if answer.data else None

    def _call(self, method: str, path: str, token: str, seconds: float, body: Any = None) -> BaseHTTPResponse:
        headers = {"Authorization": f"Bearer {token}"}
        return request(method, self.endpoint + path, headers=headers, json=body, seconds=seconds)


def _answers(balancer: Mapping[str, Any]) -> bool:
    backends = balancer["backends"] or []
    by_set = {each["backend_set"]: False for each in backends}
    for each in backends:
        by_set[each["backend_set"]] |= each["healthy"] is True or is_unchecked(each)
    return balancer["state"] == "available" and all(by_set.values())
