"""As `aws_scenarios`, on Alibaba Cloud: CLB and NLB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloud_controller.load_balancers.model import SERVICE_TAG
from local.alicloud.clb_balancers import CLB
from local.alicloud.nlb_jobs import BALANCER
from tests.crash.alicloud_environment import AliCloudEnvironment
from tests.crash.cloud_run import CloudRun
from tests.crash.cloud_scenarios import NODE_SCENARIOS, a_node
from tests.crash.daemon import Json
from tests.crash.scenarios import DNS, HTTP, HTTPS, port
from tests.crash.trial import Scenario

RANGES, OTHER_RANGES = ["10.0.0.0/8"], ["10.0.0.0/8", "192.0.2.0/24"]


@dataclass
class AliCloudRun(CloudRun[AliCloudEnvironment]):
    """One run of one scenario on Alibaba Cloud."""

    def snapshot(self) -> Json:
        """See `CloudRun.snapshot`; and the machines that drop what pods send."""
        machines = {machine.id: f"MACHINE-{index}" for index, machine in enumerate(self.machines)}
        checked = sorted(machines[each] for each in self.environment.checked() if each in machines)
        return super().snapshot() | {"checked": checked}

    def names_of_load_balancers(self) -> Mapping[str, str]:
        """See `CloudRun.names_of_load_balancers`: by their tags."""
        words: dict[str, str] = {}
        with self.environment.cloud.changing() as account:
            for each in (*account.store.all(CLB), *account.store.all(BALANCER)):
                service = each["tags"].get(SERVICE_TAG, "").partition("/")[2]
                if service in self.services:
                    number = self.services.index(service)
                    words |= {each["id"]: f"LB-OF-SERVICE-{number}", each["name"]: f"NAME-OF-SERVICE-{number}"}
        return words


def _classic(run: AliCloudRun) -> None:
    run.node()
    run.service(HTTP, HTTPS, DNS, kind="classic")


def _network(run: AliCloudRun) -> None:
    run.node()
    run.service(HTTP, HTTPS, DNS, loadBalancerSourceRanges=RANGES)


def _network_serves(run: AliCloudRun) -> bool:
    return run.ready() and run.serves("8080 TCP", "8443 TCP", "5353 UDP") and run.targets_are({0})


def _classic_serves(run: AliCloudRun) -> bool:
    served = run.serves("8080 TCP", "8443 TCP", "5353 UDP", kind="classic")
    return run.ready() and served and run.targets_are({0})


ALICLOUD_SCENARIOS: Sequence[Scenario[AliCloudRun]] = (
    Scenario(
        "CLB",
        a_node,
        AliCloudRun.ready,
        lambda run: run.service(HTTP, DNS, kind="classic"),
        lambda run: run.serves("8080 TCP", "5353 UDP", kind="classic") and run.targets_are({0}),
    ),
    Scenario(
        "port and scheduler of a CLB changed",
        _classic,
        _classic_serves,
        lambda run: run.change(settings={"scheduler": "rr"}, ports=[HTTP, port(9443, 31944), DNS]),
        lambda run: run.serves("8080 TCP", "9443 TCP", "5353 UDP", kind="classic"),
    ),
    Scenario(
        "CLB deleted", _classic, _classic_serves, lambda run: run.delete_service(), lambda run: not run.get_service()
    ),
    Scenario(
        "NLB with source ranges",
        a_node,
        AliCloudRun.ready,
        lambda run: run.service(HTTP, DNS, loadBalancerSourceRanges=RANGES),
        lambda run: run.serves("8080 TCP", "5353 UDP") and run.targets_are({0}),
    ),
    Scenario(
        "port, source ranges and scheduler of an NLB changed",
        _network,
        _network_serves,
        lambda run: run.change(
            settings={"scheduler": "rr"}, ports=[HTTP, port(9443, 31944), DNS], loadBalancerSourceRanges=OTHER_RANGES
        ),
        lambda run: run.serves("8080 TCP", "9443 TCP", "5353 UDP") and OTHER_RANGES[1] in str(run.environment.left()),
    ),
    Scenario(
        "NLB deleted", _network, _network_serves, lambda run: run.delete_service(), lambda run: not run.get_service()
    ),
    *NODE_SCENARIOS,
)
