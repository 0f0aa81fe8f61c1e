"""Which addresses a node gets: those of interfaces in use, by device index, family after family."""

from __future__ import annotations

from typing import Any

from cloud_controller.cloud import NodeAddress
from cloud_controller.clouds.aws.addresses import addresses
from cloud_controller.clouds.aws.config import IpFamily


def interface(
    device: int, *private: str, ipv6: tuple[str, ...] = (), status: str = "in-use", card: int = 0
) -> dict[str, Any]:
    return {
        "Status": status,
        "Attachment": {"DeviceIndex": device, "NetworkCardIndex": card},
        "PrivateIpAddresses": [{"PrivateIpAddress": address} for address in private],
        "Ipv6Addresses": [{"Ipv6Address": address} for address in ipv6],
    }


def of(*interfaces: dict[str, Any], families: tuple[IpFamily, ...] = ("ipv4",), **more: str) -> list[tuple[str, str]]:
    found = addresses({"InstanceId": "i-1", "NetworkInterfaces": [*interfaces], **more}, families)
    return [(address.type, address.address) for address in found]


def test_interfaces_come_by_their_device_index_whatever_ec2s_order() -> None:
    found = of(interface(1, "10.0.1.1"), interface(0, "10.0.0.1", "10.0.0.2"))

    assert found == [("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2"), ("InternalIP", "10.0.1.1")]


def test_of_one_device_index_the_first_network_card_comes_first() -> None:
    assert of(interface(1, "10.0.2.1", card=1), interface(1, "10.0.1.1", card=0))[0] == ("InternalIP", "10.0.1.1")


def test_an_interface_that_is_not_in_use_has_no_addresses() -> None:
    assert of(interface(0, "10.0.0.1"), interface(1, "10.0.1.1", status="attaching")) == [("InternalIP", "10.0.0.1")]


def test_public_addresses_and_names_follow_the_private_ones() -> None:
    found = of(
        interface(0, "10.0.0.1"),
        PublicIpAddress="203.0.113.1",
        PrivateDnsName="ip-10-0-0-1.eu-central-1.compute.internal",
        PublicDnsName="ec2-203-0-113-1.eu-central-1.compute.amazonaws.com",
    )

    assert found == [
        ("InternalIP", "10.0.0.1"),
        ("ExternalIP", "203.0.113.1"),
        ("InternalDNS", "ip-10-0-0-1.eu-central-1.compute.internal"),
        ("Hostname", "ip-10-0-0-1.eu-central-1.compute.internal"),
        ("ExternalDNS", "ec2-203-0-113-1.eu-central-1.compute.amazonaws.com"),
    ]


def test_the_families_come_in_the_configs_order_and_of_ipv6_the_first_of_each_interface() -> None:
    interfaces = (interface(0, "10.0.0.1", ipv6=("2001:db8::1", "2001:db8::2")), interface(1, ipv6=("2001:db8::3",)))

    assert of(*interfaces) == [("InternalIP", "10.0.0.1")]
    assert of(*interfaces, families=("ipv6",)) == [("InternalIP", "2001:db8::1"), ("InternalIP", "2001:db8::3")]
    assert of(*interfaces, families=("ipv6", "ipv4"))[-1] == ("InternalIP", "10.0.0.1")


def test_an_address_is_written_in_its_one_form() -> None:
    found = addresses({"NetworkInterfaces": [interface(0, ipv6=("2001:0DB8:0::0001",))]}, ("ipv6",))

    assert found == (NodeAddress("InternalIP", "2001:db8::1"),)


def test_a_terminated_machine_has_none() -> None:
    assert of(PrivateDnsName="") == []
