"""Every annotation is stored as the next process reads it: nothing is left to do after creation, change and return."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_controller.clouds.alicloud.annotation_entries import PREFIX
from cloud_controller.clouds.alicloud.nlb.annotations import NLB
from cloud_controller.load_balancers.catalogue import Annotation, Mutability
from cloud_controller.load_balancers.restrictions import SOURCE_RANGES
from tests.cloud_controller.clouds.alicloud.nlb.balancing import NlbAccount, Process
from tests.cloud_controller.clouds.alicloud.nlb.services import ENI, ZONE_H, ZONE_K, backends, built, port

pytestmark = pytest.mark.integration

PODS = {"192.168.0.101": "n1", "192.168.0.102": "n2"}
TLS = {"protocol-port": "tcpssl:80", "cert-id": "cert-1"}
HTTP = {"health-check-type": "http"}
DUAL = {"ip-version": "DualStack"}
BESIDE: dict[str, dict[str, str]] = {
    "additional-cert-ids": TLS,
    "cacert": {**TLS, "cacert-id": "ca-1"},
    "cacert-id": {**TLS, "cacert": "on"},
    "tls-cipher-policy": TLS,
    "alpn": TLS,
    "alpn-policy": {**TLS, "alpn": "on"},
    "cert-id": {"protocol-port": "tcpssl:80"},
    "protocol-port": {"cert-id": "cert-1"},
    "ppv2-pvl-ep-id-enabled": {"proxy-protocol": "on"},
    "ppv2-pvl-eps-id-enabled": {"proxy-protocol": "on"},
    "ppv2-pvl-vpc-id-enabled": {"proxy-protocol": "on"},
    "ipv6-address-type": DUAL,
    "connection-drain-timeout": {"connection-drain": "on"},
    "health-check-uri": HTTP,
    "health-check-domain": HTTP,
    "health-check-httpcode": HTTP,
    "health-check-method": HTTP,
    "listener-port-range": {ENI: "eni"},
    "server-group-type": {ENI: "eni"},
}
"""What an annotation needs to have an effect."""
TEXTS = {
    "zone-maps": (f"{ZONE_K}:vsw-k::eip-1,{ZONE_H}:vsw-h", f"{ZONE_K}:vsw-k:192.168.2.50,{ZONE_H}:vsw-h"),
    "name": ("edge",),
    "resource-group-id": ("rg-1",),
    "additional-resource-tags": ("team=web,stage=test",),
    "bandwidth-package-id": ("cbwp-1", "cbwp-2"),
    "security-group-ids": ("sg-1", ""),
    "protocol-port": ("tcpssl:80",),
    "listener-port-range": ("1000-2000:80",),
    "cert-id": ("cert-1", "cert-2"),
    "additional-cert-ids": ("cert-2,cert-3", "cert-3"),
    "cacert-id": ("ca-1",),
    "tls-cipher-policy": ("tls_cipher_policy_1_2_strict_with_1_3",),
    "backend-label": ("pool=none",),
    "health-check-uri": ("/healthz",),
    "health-check-domain": ("www.example.com",),
    "health-check-httpcode": ("http_2xx,http_4xx",),
    SOURCE_RANGES: ("10.0.0.0/8,192.0.2.0/24",),
}
OF_THE_CORE = {"id", "force-override-listeners", "preserve-lb-on-delete", "readiness-gate"}
"""They decide what is planned (`test_reuse.py`) or what pods wait for, not what is made."""
STAYS = {"security-group-ids", "additional-resource-tags", "zone-maps"}
"""What a Service leaves as it is once it says nothing of it."""


def short(entry: Annotation) -> str:
    return entry.name.removeprefix(PREFIX)


def texts(entry: Annotation) -> tuple[str, ...]:
    if entry.type is int:
        return str(entry.minimum), str(entry.maximum)
    return entry.allowed or TEXTS[short(entry)]


ENTRIES = [entry for entry in NLB if not entry.ignored and short(entry) not in OF_THE_CORE]
CASES = [(short(entry), text) for entry in ENTRIES for text in texts(entry)]


@pytest.mark.parametrize(("name", "text"), CASES, ids=lambda value: str(value)[:40] or "empty")
def test_a_setting_is_made_read_taken_back_and_set_again(name: str, text: str) -> None:
    entry = NLB.by_name.get(f"{PREFIX}{name}") or NLB.by_name[name]
    account = NlbAccount()
    for address in PODS:
        account.pod(address)
    beside = BESIDE.get(name, {})
    needs = name in ("cert-id", "cacert-id", "protocol-port")
    given, without = {**beside, name: text}, {} if needs else beside

    def model(annotations: dict[str, str]) -> Any:
        return built(port(80, "UDP" if text == "udp" else "TCP"), annotations=annotations, on=backends(pods=PODS))

    first = Process(account).converge(model(given))
    assert Process(account).plan(model(given)) == []

    back = Process(account).converge(model(without))
    again = Process(account).converge(model(given))

    replaced = entry.mutability is Mutability.REPLACE and text != entry.default
    assert (back.id != first.id, again.id != back.id) == (replaced, replaced)
    if name not in STAYS:
        fresh = NlbAccount()
        for address in PODS:
            fresh.pod(address)
        assert back.model.attributes.keys() == Process(fresh).converge(model(without)).model.attributes.keys()
    Process(account).end()
    assert account.left() == []
