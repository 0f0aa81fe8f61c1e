"""The site of one stack on a simulated AWS."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from local.api_site import ApiSite, SiteConfig
from local.aws.account import KINDS, Account
from local.aws.folder import WEBHOOK_PORT, aws_folder, credentials, site_root
from local.aws.get_token import write_command
from local.aws.revision import revision
from local.aws.status_text import render
from local.errors import SiteError
from local.stack_file import NAMESPACE
from local.state_folder import write_private
from local.waiting import Tell, to_nobody

Answer = TypeVar("Answer")

SIMULATED = "load balancers have listeners and targets but forward nothing: moto has AWS's API and no data plane"


class AwsSite(ApiSite):
    """The site of one stack."""

    CLOUD = "the simulated AWS (moto)"
    API_TITLE = "the simulated AWS (moto)"
    API_MODULE = "local.aws"
    MORE_PORTS: ClassVar[Mapping[int, str]] = {WEBHOOK_PORT: "the token webhook of its clusters"}

    def __init__(self, state_dir: Path, stack: str, region: str | None = None, *, registry: Path | None = None) -> None:
        super().__init__(aws_folder(site_root(state_dir, stack)), registry=registry)
        self._given_region = region

    def revision(self) -> str:
        """The revision of the simulator's modules and of moto."""
        return revision()

    def suspend(self) -> None:
        """Nothing to note: the next start boots the instances that moto lists as running."""

    def up(self, tell: Tell = to_nobody) -> None:
        """As for every site; also write the command that kubeconfigs of EKS call."""
        super().up(tell)
        with self._lock("up", tell):
            write_private(self._region_note, self._region)
            write_command(self._commands)

    @property
    def _region(self) -> str:
        """The stack's region; without a stack file, the last one."""
        if self._given_region is not None:
            return self._given_region
        try:
            return self._region_note.read_text()
        except FileNotFoundError:
            raise SiteError(f"the region of the site in {self.folder.root} is unknown: no stack file") from None

    @property
    def _region_note(self) -> Path:
        return self.folder.cloud / "region"

    @property
    def credentials(self) -> tuple[str, str]:
        """The access key with which the stack signs its calls, and its secret."""
        try:
            return credentials(self.folder)
        except FileNotFoundError:
            raise SiteError(f"there is no site in {self.folder.root}; create one with `up` first") from None

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of a stack's runs: AWS's default credentials lead to this site."""
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
            # The user's own files must not add anything.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "no_proxy": past_proxies,
            "NO_PROXY": past_proxies,
            "PATH": os.pathsep.join([str(self._commands), inherited.get("PATH", os.defpath)]),
        }

    def stack_config(self) -> SiteConfig:
        """The account's endpoint, the stack's key, and ranges that this machine can bind: the site's network 0."""
        access_key, secret_key = self.credentials
        ranges = self.block.network(0)
        free = {"vpcCidr": ranges.machines, "podCidr": ranges.pods, "serviceCidr": ranges.services}
        return SiteConfig(
            {f"{NAMESPACE}:aws": {"endpoint": self.endpoint}},
            {"aws:accessKey": access_key, "aws:secretKey": secret_key},
            {f"{NAMESPACE}:aws": {key: str(value) for key, value in free.items()}},
        )

    def pending(self) -> list[str]:
        """The clusters, control planes and machines that are changing."""
        clusters = {each["name"]: each["state"] for each in self._ask(Account.clusters)}
        booting = (
            each["node_name"]
            for each in self._ask(Account.machines)
            if each["state"] == "running"
            and clusters.get(each["cluster"]) == "ACTIVE"
            and not self.api.find(each["id"])
        )
        changing = [name for name, state in clusters.items() if state in ("CREATING", "UPDATING")]
        # Killed just now, and not noticed by the API yet.
        healthy = all(state == "ACTIVE" for state in clusters.values())
        unnoticed = self.ended_control_planes() if healthy else ()
        return [*changing, *(f"control plane {each}" for each in unnoticed), *booting]

    def crashed_machines(self) -> list[str]:
        """The names of the machines that stopped because their process ended."""
        return [each["node_name"] for each in self._ask(Account.machines) if each["crashed"]]

    def boot_crashed_machines(self) -> None:
        """Start the machines that `crashed_machines` names."""
        crashed = [each["id"] for each in self._ask(Account.machines) if each["crashed"]]
        self._ask(lambda account: account.start(crashed))

    def end_simulated_machines(self) -> None:
        """There are none: every machine of a cluster is real."""

    def after_up(self, cluster: str) -> list[str]:
        """What does not work here."""
        del cluster
        return [SIMULATED]

    def left(self) -> list[str]:
        """What the account holds that a new one does not; empty for a stopped site.

        Raises SiteError if the simulator runs and does not answer.
        """
        if not self.is_running():
            return []
        if not self.is_healthy():
            raise SiteError(f"{self.API_TITLE} does not answer, so what is left is unknown; `stop` ends it")
        return self._ask(Account.left)

    def nothing_left(self) -> str | None:
        """The kinds that `left` looked for; None for a stopped site, where it did not look."""
        return f"the account is empty; checked: {', '.join(KINDS)}" if self.is_healthy() else None

    def objects(self, *, healthy: bool) -> dict[str, Any]:
        """The account's clusters, instances and load balancers; none while the simulator does not answer."""
        questions = {
            "clusters": Account.clusters,
            "machines": Account.machines,
            "load_balancers": Account.load_balancers,
        }
        return {name: self._ask(question) for name, question in questions.items()} if healthy else {}

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
            raise SiteError(f"{self.API_TITLE} does not answer: {error}") from error
