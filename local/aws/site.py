"""The site of a stack on a simulated AWS: its block of addresses and the process that is AWS for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from local.api_site import ApiSite, SiteError, Tell, to_nobody, wait_until
from local.aws import webhook
from local.aws.account import KINDS, Account
from local.aws.folder import aws_folder, credentials, site_root
from local.aws.get_token import write_command
from local.aws.revision import revision
from local.aws.status_text import render
from local.stack_copy import NAMESPACE, SiteConfig
from local.state_folder import write_private

Answer = TypeVar("Answer")

SIMULATED = "load balancers have listeners and targets, and forward nothing: moto has AWS's API, and no data plane"


class AwsSite(ApiSite):
    """The site of one stack."""

    CLOUD = "the simulated AWS (moto)"
    API_TITLE = "the simulated AWS (moto)"
    API_MODULE = "local.aws"
    MORE_PORTS: ClassVar[Mapping[int, str]] = {webhook.PORT: "the token webhook of its clusters"}

    def __init__(self, state_dir: Path, stack: str, region: str | None = None, *, registry: Path | None = None) -> None:
        super().__init__(aws_folder(site_root(state_dir, stack)), registry=registry)
        self._given_region = region

    def revision(self) -> str:
        """Of what stands around moto, and moto's."""
        return revision()

    def suspend(self) -> None:
        """Nothing to note: where nothing runs, the next start boots what moto says is running."""

    def up(self, tell: Tell = to_nobody) -> None:
        """As every site; and the command that kubeconfigs of EKS call is there."""
        super().up(tell)
        with self._lock("up", tell):
            write_private(self._region_note, self._region)
            write_command(self._commands)

    @property
    def _region(self) -> str:
        """The stack's; without its file the one that it had last."""
        if self._given_region is not None:
            return self._given_region
        try:
            return self._region_note.read_text()
        except FileNotFoundError:
            raise SiteError(f"nobody knows the region of the site in {self.folder.root}") from None

    @property
    def _region_note(self) -> Path:
        return self.folder.cloud / "region"

    @property
    def credentials(self) -> tuple[str, str]:
        """The key with which the stack signs, and its secret."""
        try:
            return credentials(self.folder)
        except FileNotFoundError:
            raise SiteError(f"there is no site in {self.folder.root}; bring one up first") from None

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """What an engine gets of an environment: whoever asks for AWS's default credentials finds this site's."""
        access_key, secret_key = self.credentials
        kept = {name: value for name, value in inherited.items() if not name.startswith("AWS_")}
        past_proxies = ",".join(filter(None, [kept.get("no_proxy") or kept.get("NO_PROXY"), self.block.api_address]))
        return {
            **kept,
            "AWS_ACCESS_KEY_ID": access_key,
            "AWS_SECRET_ACCESS_KEY": secret_key,
            "AWS_REGION": self._region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Nor does a file of the user's say anything.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "no_proxy": past_proxies,
            "NO_PROXY": past_proxies,
            "PATH": os.pathsep.join([str(self._commands), inherited.get("PATH", os.defpath)]),
        }

    def stack_config(self) -> SiteConfig:
        """Where the account is, the stack's key, and the ranges that this machine can bind: network 0 of the site's."""
        access_key, secret_key = self.credentials
        ranges = self.block.network(0)
        return SiteConfig(
            {
                f"{NAMESPACE}:aws": {
                    "endpoint": self.endpoint,
                    "vpcCidr": str(ranges.machines),
                    "podCidr": str(ranges.pods),
                    "serviceCidr": str(ranges.services),
                }
            },
            {"aws:accessKey": access_key, "aws:secretKey": secret_key},
        )

    def wait_settled(self, seconds: float, tell: Tell = to_nobody) -> None:
        """Wait until no cluster and no machine is on its way, at most `seconds`; raises SiteError."""

        def pending() -> list[str]:
            clusters = {each["name"]: each["state"] for each in self._ask(Account.clusters)}
            booting = (
                each["node_name"]
                for each in self._ask(Account.machines)
                if each["state"] == "running"
                and clusters.get(each["cluster"]) == "ACTIVE"
                and not self._process(each["id"])
            )
            changing = [name for name, state in clusters.items() if state in ("CREATING", "UPDATING")]
            # One that was killed just now, and the API has not noticed yet.
            healthy = all(state == "ACTIVE" for state in clusters.values())
            unnoticed = self.ended_control_planes() if healthy else ()
            return [*changing, *(f"control plane {each}" for each in unnoticed), *booting]

        if not wait_until(lambda: not pending(), seconds, lambda: tell(f"waiting for {', '.join(pending())}")):
            raise SiteError(f"after {seconds:g} s this is still on its way: {', '.join(pending())}")

    def crashed_machines(self) -> list[str]:
        """The names of the machines that are stopped though nobody stopped them."""
        return [each["node_name"] for each in self._ask(Account.machines) if each["crashed"]]

    def boot_crashed_machines(self) -> None:
        """Start the machines that `crashed_machines` names."""
        crashed = [each["id"] for each in self._ask(Account.machines) if each["crashed"]]
        self._ask(lambda account: account.start(crashed))

    def end_simulated_machines(self) -> None:
        """There are none: each machine of a cluster's is real here."""

    def after_up(self, cluster: str) -> list[str]:
        """What can't be tried."""
        del cluster
        return [SIMULATED]

    def left(self) -> list[str]:
        """What is in the account that an untouched one has not; empty of a site that does not run.

        Raises SiteError if it runs and does not answer.
        """
        if not self.is_running():
            return []
        if not self.is_healthy():
            raise SiteError(f"{self.API_TITLE} does not answer, so nobody can tell what is left; `stop` ends it")
        return self._ask(Account.left)

    def nothing_left(self) -> str | None:
        """What `left` looked for; None of a site that does not run: there it did not look."""
        return f"the account is empty: of {', '.join(KINDS)} there is none" if self.is_healthy() else None

    def status(self) -> dict[str, Any]:
        """What runs where, as JSON has it."""
        if not self.folder.site_file.exists():
            return {"state_folder": str(self.folder.root), "up": False}
        healthy = self.is_healthy()
        questions = {
            "clusters": Account.clusters,
            "machines": Account.machines,
            "load_balancers": Account.load_balancers,
        }
        return {
            "state_folder": str(self.folder.root),
            "up": healthy,
            "block": self.block.base,
            "endpoint": self.endpoint,
            "processes": self.processes(),
            **({name: self._ask(question) for name, question in questions.items()} if healthy else {}),
        }

    def render(self, status: Mapping[str, Any], outputs: Mapping[str, Any]) -> str:
        """The status as text."""
        return render(status, outputs)

    @property
    def _commands(self) -> Path:
        """A folder for the PATH."""
        return self.folder.cloud / "bin"

    def _ask(self, question: Callable[[Account], Answer]) -> Answer:
        try:
            return question(Account(self.endpoint, self._region, *self.credentials))
        except (BotoCoreError, ClientError) as error:
            raise SiteError(f"{self.API_TITLE} gives no answer: {error}") from error
