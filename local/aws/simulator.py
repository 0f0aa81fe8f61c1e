"""moto in this process: its backends on disk, and the reads and writes of its EKS and EC2 by the lifecycle.

A change is on disk before its call is answered, as in AWS: when this process is killed, the next one continues from
there. moto itself keeps everything in memory; its objects can be pickled (some tens of milliseconds, a few megabytes).
"""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import moto.backends
from moto.core.base_backend import BackendDict
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance, StateReason
from moto.eks import models as eks
from moto.iam.models import IAMBackend, ManagedPolicy, iam_backends
from moto.sts.models import AssumedRole, sts_backends

from local.aws.account import CLUSTER_TAG, PROCESS_ENDED
from local.aws.differences import SiteCluster, differ_from_moto
from local.aws.scaling import to_replace
from local.aws.user_data import KubeletFlags, decoded, kubelet_flags
from local.aws.web_identity import Provider
from local.state_folder import write_private

SERVICES = ("autoscaling", "ec2", "eks", "elb", "elbv2", "iam", "ssm", "sts")
"""The saved backends of moto."""

OWNER = "site"
"""The IAM user that makes the stack."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A running or stopped instance that is to be a node of a cluster."""

    id: str
    cluster: str
    node_name: str
    address: str
    zone: str
    cpus: int
    memory_mib: int
    flags: KubeletFlags
    state: str


class Simulator:
    """The account of a site. Callers of moto hold `lock`; those that change it call `save` before they release it."""

    def __init__(self, state_file: Path) -> None:
        self._file = state_file
        self.lock = threading.RLock()
        differ_from_moto()

    def load(self) -> None:
        """Restore the saved account, if there is one. Raises UnreadableStateError."""
        if not self._file.exists():
            _load_managed_policies()
            return
        try:
            saved: dict[str, dict[str, dict[str, Any]]] = pickle.loads(self._file.read_bytes())
        except Exception as error:
            why = (
                f"{self._file} is not readable: {error!r}. Use the version of moto that wrote it, or `stop` the site "
                f"and delete {self._file.parents[1]}, which loses the account"
            )
            raise UnreadableStateError(why) from error
        for service, accounts in saved.items():
            backends = _backends(service)
            for account, regions in accounts.items():
                for region, backend in regions.items():
                    dict.__setitem__(backends[account], region, backend)

    def save(self) -> None:
        """Write everything to disk atomically."""
        state = {
            service: {account: dict(regions) for account, regions in _backends(service).items()} for service in SERVICES
        }
        write_private(self._file, pickle.dumps(state))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """For changes by the lifecycle: exclusive, and on disk at the end."""
        with self.lock:
            yield
            self.save()

    def credentials(self) -> tuple[str, str]:
        """The access key of the user that makes the stack, and its secret; created at the first call."""
        backend = _iam()
        if OWNER not in backend.users:
            with self.changing():
                backend.create_user("aws", OWNER)
                backend.create_access_key(OWNER)
        (key,) = backend.users[OWNER].access_keys
        return key.access_key_id, key.secret_access_key

    def secret_of(self, access_key: str) -> str | None:
        """The secret of a key of IAM or STS."""
        for accounts in list(iam_backends.values()):
            for backend in list(accounts.values()):
                if (key := backend.access_keys.get(access_key)) and key.status == "Active":
                    return str(key.secret_access_key)
        return None

    def provider(self, issuer: str) -> Provider | None:
        """IAM's provider of an issuer of tokens."""
        for each in list(_iam().open_id_providers.values()):
            if issuer == f"https://{each.url}":
                return Provider(each.arn, each.url, tuple(each.client_id_list))
        return None

    def trust_policy(self, arn: str) -> dict[str, Any] | None:
        """Who may assume a role; None if there is no such role."""
        role = next((each for each in list(_iam().roles.values()) if each.arn == arn), None)
        return None if role is None else dict(json.loads(role.assume_role_policy_document or "{}"))

    def session_of(self, access_key: str) -> AssumedRole | None:
        """The session of a role, of any account and region, that a key belongs to; None for a user's key."""
        backends = (backend for accounts in list(sts_backends.values()) for backend in list(accounts.values()))
        found = (backend.get_assumed_role_from_access_key(access_key) for backend in backends)
        return next((each for each in found if each is not None), None)

    def policies_of(self, session: AssumedRole) -> list[dict[str, Any]]:
        """The policies of the role that a session has assumed."""
        role = next((each for each in list(_iam().roles.values()) if each.arn == session.role_arn), None)
        if role is None:
            return []  # deleted since
        managed = [*role.managed_policies.values()]  # in one go: a call in another thread may attach one meanwhile
        documents = [*role.policies.values(), *(_default_version(each) for each in managed)]
        return [json.loads(each) if isinstance(each, str) else each for each in documents]

    def clusters(self) -> list[SiteCluster]:
        """The existing clusters of EKS."""
        with self.lock:
            return [
                cluster
                for regions in eks.eks_backends.values()
                for backend in regions.values()
                for cluster in backend.clusters.values()
                if isinstance(cluster, SiteCluster)
            ]

    def creator_of(self, name: str) -> str | None:
        """The creator of the cluster with this name; None if there is none."""
        return next((each.creator for each in self.clusters() if each.name == name), None)

    def machines(self) -> list[Machine]:
        """The instances that are to be nodes and are not terminated."""
        with self.lock:
            return [machine for instance in self._instances() if (machine := _machine(instance)) is not None]

    def stop_crashed(self, id: str) -> None:
        """Mark a running instance as stopped, because its process has ended."""
        for instance in self._instances():
            if instance.id == id and instance.is_running():
                instance.stop()
                instance.state_reason = StateReason(f"{PROCESS_ENDED}: its process ended", PROCESS_ENDED)

    def start_crashed(self) -> None:
        """Restart those that were stopped because their process ended."""
        for instance in self._instances():
            if instance.state == "stopped" and instance.state_reason.code == PROCESS_ENDED:
                instance.start()

    def replace_outdated(self, booted: Container[str]) -> None:
        """Continue the refreshes of scaling groups: replace one machine each, if all its machines are `booted`."""
        for regions in list(_backends("autoscaling").values()):
            for backend in list(regions.values()):
                with self.lock:
                    for machine in list(to_replace(backend, {m.id for m in self.machines() if m.id not in booted})):
                        with self.changing():
                            backend.terminate_instance(machine, should_decrement=False)

    def _instances(self) -> list[Instance]:
        return [
            instance
            for regions in ec2_backends.values()
            for backend in regions.values()
            for instance in backend.all_instances()
        ]


class UnreadableStateError(Exception):
    """The saved state of moto is not readable."""


def _machine(instance: Instance) -> Machine | None:
    cluster = next((tag["key"] for tag in instance.get_tags() if tag["key"].startswith(CLUSTER_TAG)), None)
    if cluster is None or instance.state not in ("running", "stopped"):
        return None
    size = INSTANCE_TYPES.get(instance.instance_type, INSTANCE_TYPES["m5.large"])
    return Machine(
        id=instance.id,
        cluster=cluster.removeprefix(CLUSTER_TAG),
        node_name=instance.private_dns_name,
        address=str(instance.private_ip),
        zone=str(instance.availability_zone),
        cpus=size["VCpuInfo"]["DefaultVCpus"],
        memory_mib=size["MemoryInfo"]["SizeInMiB"],
        flags=kubelet_flags(decoded(str(instance.user_data or ""))),
        state=instance.state,
    )


def _backends(service: str) -> BackendDict[Any]:
    backends: BackendDict[Any] = moto.backends.get_backend(service)  # type: ignore[call-overload]
    return backends


def _default_version(policy: ManagedPolicy) -> str:
    return str(next(each.document for each in policy.versions if each.version_id == policy.default_version_id))


def _iam() -> IAMBackend:
    return iam_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _load_managed_policies() -> None:
    """AWS's own policies, which roles attach by name; only for the partition in use, because there are many."""
    switch = "MOTO_IAM_LOAD_MANAGED_POLICIES"
    os.environ[switch] = "true"
    assert _iam().aws_managed_policies
    del os.environ[switch]
