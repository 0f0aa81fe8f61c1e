"""Rules of security groups as texts and as the API has them: equal in both directions."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network

import pytest

from cloud_controller.clouds.aws.ip_permissions import from_group, ip_permissions, rule_texts
from cloud_controller.clouds.aws.security_rules import client_rules


@pytest.mark.parametrize(
    ("rule", "permission"),
    [
        (
            "tcp 80-443 10.0.0.0/8",
            {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
        ),
        (
            "udp 53-53 fd00::/8",
            {"IpProtocol": "udp", "FromPort": 53, "ToPort": 53, "Ipv6Ranges": [{"CidrIpv6": "fd00::/8"}]},
        ),
        (
            "icmp 3-4 0.0.0.0/0",
            {"IpProtocol": "icmp", "FromPort": 3, "ToPort": 4, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
        ),
        (
            "icmp -1--1 10.0.0.0/8",
            {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
        ),
        (from_group("sg-0123"), {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-0123"}]}),
        (
            "tcp 443-443 pl-0123",
            {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "PrefixListIds": [{"PrefixListId": "pl-0123"}]},
        ),
        ("50 10.0.0.0/8", {"IpProtocol": "50", "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}),
    ],
)
def test_a_rule_is_the_same_as_text_and_as_permission(rule: str, permission: dict[str, object]) -> None:
    assert ip_permissions([rule]) == [permission]
    assert rule_texts([permission]) == {rule: ""}


def test_rules_of_the_same_ports_are_one_permission_with_many_sources() -> None:
    rules = ["tcp 80-80 10.0.0.0/8", "tcp 80-80 fd00::/8", "tcp 80-80 192.168.0.0/16"]

    found = ip_permissions(rules)

    assert len(found) == 1
    assert [each["CidrIp"] for each in found[0]["IpRanges"]] == ["10.0.0.0/8", "192.168.0.0/16"]
    assert rule_texts(found) == dict.fromkeys(rules, "")


def test_the_texts_are_those_that_the_api_is_read_back_as() -> None:
    found = client_rules([("TCP", 80), ("UDP", 53)], [IPv4Network("192.0.2.0/24"), IPv6Network("2001:db8::/32")])

    assert rule_texts(ip_permissions(found)).keys() == set(found)
