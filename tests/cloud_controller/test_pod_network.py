"""The NetworkPolicy of a CCM in the pod network."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from cloud_controller import clouds, pod_network


def reaches(cloud: str, address: str, port: int, protocol: str = "TCP") -> bool:
    """Whether the policy lets packets out to this address."""
    spec = pod_network.policy({"k8s-app": "ccm"}, [10258], clouds.descriptor(cloud).metadata)

    def within(peer: Any) -> bool:
        block = peer.get("ipBlock", {"cidr": "255.255.255.255/32"})
        found = ip_address(address)
        return found in ip_network(block["cidr"]) and not any(
            found in ip_network(each) for each in block.get("except", [])
        )

    return any(
        {"port": port, "protocol": protocol} in rule["ports"] and any(map(within, rule["to"]))
        for rule in spec["egress"]
    )


@pytest.mark.parametrize("cloud", clouds.names())
def test_it_reaches_the_apis_of_the_cloud_and_of_the_cluster_and_dns(cloud: str) -> None:
    assert reaches(cloud, "52.94.10.1", 443)
    assert reaches(cloud, "100.100.80.1", 443)  # inside of Alibaba Cloud, its API has such addresses
    assert reaches(cloud, "10.0.0.1", 6443)
    assert reaches(cloud, "169.254.20.10", 53, "UDP")


@pytest.mark.parametrize("cloud", clouds.names())
def test_in_a_cluster_with_ipv6_addresses_it_reaches_the_same(cloud: str) -> None:
    assert reaches(cloud, "2600:1f14::1", 443)
    assert reaches(cloud, "fd9c:5ee0::1", 443)  # EKS gives Services such addresses, the API server's first of all


@pytest.mark.parametrize(
    ("cloud", "address", "port"),
    [
        ("aws", "169.254.169.254", 80),
        ("aws", "169.254.169.254", 443),
        ("aws", "fd00:ec2::254", 443),
        ("aws", "fe80::1", 443),
        ("alicloud", "100.100.100.200", 80),
        ("alicloud", "100.100.100.200", 443),
        ("mycloud", "10.0.0.1", 10250),
        ("mycloud", "10.0.0.1", 2379),
        ("mycloud", "192.0.2.1", 25),
    ],
)
def test_it_reaches_neither_metadata_nor_kubelets_nor_etcd_nor_anything_else(
    cloud: str, address: str, port: int
) -> None:
    assert not reaches(cloud, address, port)


def test_a_further_port_is_open_like_that_of_the_clouds_apis_and_not_to_metadata() -> None:
    spec = pod_network.policy({"k8s-app": "doctor"}, (), (), [9091])

    [rule] = [each for each in spec["egress"] if {"port": 9091, "protocol": "TCP"} in each["ports"]]
    assert [(block["ipBlock"]["cidr"], block["ipBlock"]["except"]) for block in rule["to"]] == [
        ("0.0.0.0/0", ["169.254.0.0/16"]),
        ("::/0", ["fe80::/10"]),
    ]
    assert spec["ingress"] == []


def test_only_the_port_of_metrics_and_probes_is_reached() -> None:
    spec = pod_network.policy({"k8s-app": "ccm"}, [10258], ())

    assert {*spec["policyTypes"]} == {"Ingress", "Egress"}
    assert spec["ingress"] == [{"ports": [{"port": 10258, "protocol": "TCP"}]}]
