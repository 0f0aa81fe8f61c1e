"""cloud.conf as upstream writes it, and clouds.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.openstack import CLOUD
from cloud_controller.clouds.openstack.clouds_yaml import cloud
from cloud_controller.clouds.openstack.config import Config, parse
from cloud_controller.clouds.openstack.credentials import ApplicationCredential, Named, Password

BASE = """
[Global]
cluster-id=c-1
auth-url=http://127.0.0.1:22000/v3
username=demo
password=not-to-be-shown
tenant-name=demo
domain-id=default
tenant-domain-id=other
region=RegionOne
"""
CLOUDS = """
clouds:
  prod:
    auth: {auth_url: "https://keystone/v3", application_credential_id: ac-1, application_credential_secret: hidden}
    auth_type: v3applicationcredential
    region_name: north
    interface: internal
    cacert: /etc/ca.pem
"""
FROM_CLOUDS = "[Global]\ncluster-id=c-1\nuse-clouds=true\nclouds-file=clouds.yaml\ncloud={}\n"


def test_the_peers_own_file_is_read() -> None:
    text = BASE + (
        "[Networking]\npublic-network-name=public\ninternal-network-name=a\ninternal-network-name=b\n"
        "address-sort-order=10.0.0.0/8, fd00::/8\n[Route]\nrouter-id=r-1\n"
        "[LoadBalancer]\nfloating-network-id=f\ncreate-monitor=true\nmonitor-delay=2m\nmonitor-timeout=1m\n"
        '[LoadBalancerClass "dmz"]\nfloating-network-id=p2\nfloating-subnet-id=s2\n'
    )

    found = parse(text)

    assert found.credentials == Password(
        Named(name="demo", domain_id="default"), "not-to-be-shown", Named(name="demo", domain_id="other")
    )
    assert (found.cluster_id, found.region, found.router_id, found.interface) == ("c-1", "RegionOne", "r-1", "public")
    assert found.networking.public_networks == {"public"}
    assert found.networking.internal_networks == {"a", "b"}
    assert [str(each) for each in found.networking.sort_order] == ["10.0.0.0/8", "fd00::/8"]
    assert found.load_balancers is not None
    assert (found.load_balancers.monitor_delay, found.load_balancers.monitor_timeout) == (120, 60)
    assert found.load_balancers.classes["dmz"].floating_subnet_id == "s2"


def test_an_application_credential_needs_no_project() -> None:
    text = (
        "[Global]\ncluster-id=c-1\nauth-url=https://k\napplication-credential-id=ac\napplication-credential-secret=s\n"
    )

    assert parse(text).credentials == ApplicationCredential("s", "ac", None, Named())


def test_a_cloud_of_a_clouds_yaml_says_everything() -> None:
    found = parse(FROM_CLOUDS.format("prod"), lambda path, name: cloud(CLOUDS if path == "clouds.yaml" else "", name))

    assert found == Config(
        "c-1",
        "https://keystone/v3",
        ApplicationCredential("hidden", "ac-1", None, Named()),
        region="north",
        interface="internal",
        ca_file="/etc/ca.pem",
    )


def test_a_cloud_that_the_clouds_yaml_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidConfiguration, match=r"cloud: not in the clouds\.yaml \(allowed: prod\)"):
        parse(FROM_CLOUDS.format("test"), lambda _, name: cloud(CLOUDS, name))


def test_sections_that_other_programs_read_are_ignored() -> None:
    text = BASE + "[BlockStorage]\nbs-version=v3\n[Metadata]\nsearch-order=configDrive\n"

    assert parse(text) == parse(BASE)


@pytest.mark.parametrize(
    ("line", "provider"), [("", ""), ("lb-provider=amphora", "amphora"), ("lb-provider=octavia", "amphora")]
)
def test_the_provider_is_octavias_default_unless_the_file_names_it(line: str, provider: str) -> None:
    options = parse(f"{BASE}[LoadBalancer]\n{line}\n").load_balancers

    assert options is not None
    assert options.provider == provider


def test_load_balancers_can_be_turned_off() -> None:
    assert parse(BASE + "[LoadBalancer]\nenabled=false\n").load_balancers is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BASE + "trust-id=t\n", r"trust-id: trusts are not supported"),
        (BASE + "tls-insecure=true\n", r"tls-insecure: certificates are always verified"),
        (BASE.replace("cluster-id=c-1\n", ""), r"cluster-id: missing"),
        (BASE.replace("tenant-name=demo\n", ""), r"tenant-id: missing"),
        (BASE.replace("domain-id=default\n", ""), r"user-domain-name: missing"),
        (BASE.replace("http:", "ftp:"), r"auth-url: not a valid URL"),
        (BASE + "[LoadBalancer]\nnode-security-group=g\n", r"node-security-group: .*by manage-security-groups"),
        (BASE + "[LoadBalancer]\nlb-provider=ovn\n", r"lb-provider: not a valid value \(allowed: amphora, octavia\)"),
        (BASE + "[LoadBalancer]\nmonitor-delay=soon\n", r"monitor-delay: not a duration"),
        (
            BASE + '[LoadBalancer]\nfloating-subnet="~(?!dmz).*"\n',
            r"\[LoadBalancer\] floating-subnet: '~\(\?!dmz\)\.\*' is not a valid pattern: .*RE2 expression",
        ),
        (
            BASE + '[LoadBalancer]\n[LoadBalancerClass "dmz"]\nfloating-subnet=~(?P=a)\n',
            r"\[LoadBalancerClass\] \(line \d+\) floating-subnet: .* is not a valid pattern",
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words) as refused:
        parse(text)

    assert "not-to-be-shown" not in str(refused.value)


@pytest.mark.parametrize("line", ["ca-file={}", "use-clouds=true\ncloud=prod\nclouds-file={}"])
def test_a_file_that_cannot_be_read_is_refused_at_the_start(line: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="missing cannot be read: No such file"):
        CLOUD.from_config(BASE + line.format(tmp_path / "missing") + "\n")


def test_no_secret_is_shown() -> None:
    assert "not-to-be-shown" not in repr(parse(BASE))


def test_a_check_that_could_outlast_its_interval_is_refused() -> None:
    """Otherwise each Service would be, for an annotation that it does not have."""
    with pytest.raises(InvalidConfiguration, match=r"\[LoadBalancer\] monitor-timeout: longer than monitor-delay"):
        parse(BASE + "[LoadBalancer]\nmonitor-delay=2\n")


def test_credentials_of_the_file_go_before_those_of_its_clouds_yaml() -> None:
    text = FROM_CLOUDS.format("prod") + "application-credential-id=own\napplication-credential-secret=s\n"

    found = parse(text, lambda _, name: cloud(CLOUDS, name))

    assert found.credentials == ApplicationCredential("s", "own", None, Named())


def test_an_interface_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match=r"clouds.yaml: prod: interface: not a valid value"):
        parse(FROM_CLOUDS.format("prod"), lambda _, name: cloud(CLOUDS.replace("internal", "nowhere"), name))
