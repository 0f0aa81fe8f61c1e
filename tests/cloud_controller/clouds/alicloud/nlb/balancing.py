"""The stand-in's account for tests of NLBs, and processes that work on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cloud_controller.cloud import CloudError
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.clouds.alicloud.nlb.load_balancers import NetworkLoadBalancers
from cloud_controller.clouds.common.cache import Cache
from cloud_controller.clouds.common.concurrent_calls import ConcurrentCalls
from cloud_controller.load_balancers.diff import diff
from cloud_controller.load_balancers.model import CLUSTER_TAG, Built, ObservedLoadBalancer, Owner
from cloud_controller.load_balancers.operations import OperationResult
from local.alicloud import machines
from local.alicloud.account import REGION
from local.alicloud.clb_certificates import add_certificate
from local.alicloud.nlb_jobs import BALANCER, GROUP, LISTENER
from local.standin.faults import Fault
from local.standin.refusals import Refusal
from tests.cloud_controller.clouds.alicloud.account import VPC, Account
from tests.cloud_controller.clouds.alicloud.nlb.services import ZONE_H, ZONE_K
from tests.cloud_controller.cluster import Cluster

OWNER = Owner("c1", "uid-1", "default", "web")
KINDS = (BALANCER, LISTENER, GROUP, machines.SECURITY_GROUP)


class NlbAccount(Account):
    """An account with what Services may name. Its time passes only while a process waits."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        world = self.standin.world
        began = world.clock()
        world.clock = lambda: began + self.passed
        world.job_seconds = 0.0
        with self.standin.changing() as account:
            for name, zone, cidr in (("vsw-h", ZONE_H, "192.168.1.0/24"), ("vsw-k", ZONE_K, "192.168.2.0/24")):
                machines.add_vswitch(account, VPC, zone, cidr, id=name)
            for name in ("cert-1", "cert-2", "cert-3", "ca-1"):
                add_certificate(account, name)
            for name in ("sg-1", "sg-by-hand"):
                machines.add_security_group(account, VPC, name)
            machines.add_bandwidth_package(account, "cbwp-1")
            machines.add_bandwidth_package(account, "cbwp-2")
            machines.add_eip(account, "eip-1")
            for number in (1, 2, 3):
                machines.add_instance(account, self.vswitch, id=f"i-n{number}", tags={CLUSTER_TAG: "c-1"})

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def new_cloud(self, **config: Any) -> Any:
        """The cloud as a new process of the service controller sees it, with NLBs alone."""
        made = self.cloud(**config)
        del made.load_balancers._kinds["clb"]
        return made

    def settle(self) -> None:
        """Let jobs end."""
        self.sleep(1)

    def cluster(self) -> Cluster:
        """A cluster with two nodes of the account."""
        found = Cluster()
        for name in ("n1", "n2"):
            (interface,) = (each for each in self.objects(machines.ENI) if each["instance"] == f"i-{name}")
            found.put_node(name, f"{REGION}.i-{name}", interface["addresses"][0])
        return found

    def pod(self, address: str) -> None:
        """Put a network interface with this address into the VPC."""
        with self.standin.changing() as account:
            machines.add_eni(account, self.vswitch, address=address, instance="i-n1")

    def put(self, kind: str, **changes: Any) -> None:
        """Change the only object of a kind by hand."""
        (found,) = self.objects(kind)
        with self.standin.changing() as account:
            account.fill(kind, found["id"], **changes)

    def refuse(self, action: str, code: str, count: int | None = 1) -> None:
        self.standin.faults.add(Fault(f"nlb.{action}", error=Refusal(400, code, "refused by the test"), count=count))

    def fail_job(self, action: str, count: int | None = 1) -> None:
        self.standin.faults.add(Fault(f"nlb.{action}", fails_job="Failed", count=count))

    def counts(self) -> Counter[str]:
        """The calls since the last count, by action."""
        return Counter({name.partition(".")[2]: count for name, count in self.calls().items()})

    def left(self) -> list[str]:
        """All that is there of load balancers."""
        return sorted(
            each["id"] for kind in KINDS for each in self.objects(kind) if each["id"] not in ("sg-1", "sg-by-hand")
        )


class Process:
    """One process of the cluster. It remembers nothing of another."""

    def __init__(self, account: NlbAccount, patience: float = 1.0) -> None:
        self.account = account
        self.cluster_id, self.vpc_id = "c1", VPC
        client: Any = account.cloud()._client
        client._sleep = account.sleep
        self.client = client
        cache = Cache(lambda: account.passed)
        self.nlb = NetworkLoadBalancers(client, self, cache, ConcurrentCalls(2), patience=patience, sleep=account.sleep)

    def observed(self) -> list[ObservedLoadBalancer]:
        return self.nlb.read([OWNER.uid])

    def plan(self, wanted: Built | None) -> list[Any]:
        model = wanted.model if wanted else None
        found = diff(model, self.observed(), NLB, target="service/default/web", client_token=OWNER.client_token)
        return [action.operation for action in found if action.operation is not None]

    def apply(self, wanted: Built | None) -> list[OperationResult]:
        operations = self.plan(wanted)
        self.account.counts()
        return self.nlb.perform(None, operations) if operations else []

    def converge(self, wanted: Built | None) -> ObservedLoadBalancer:
        """Apply until nothing is left to do; return the load balancer."""
        self.end(wanted)
        (found,) = self.observed()
        return found

    def end(self, wanted: Built | None = None) -> None:
        """Apply until nothing is left to do."""
        for _ in range(9):
            results = self.apply(wanted)
            if not results and all(lb.settled for lb in self.observed()):
                return
            self.account.sleep(3)
        raise AssertionError([(type(each.operation).__name__, each.error) for each in results])


def errors(results: Iterable[OperationResult]) -> list[CloudError]:
    return [each.error for each in results if each.error is not None]
