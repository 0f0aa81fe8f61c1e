"""The section `openstack` of a stack file: the cloud config that it comes to, and the message for each mistake."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from cloud_controller.clouds.openstack.config import parse as parsed
from components import clouds
from components.clouds.openstack.access import cloud_config, rendered
from components.placeholder import PlaceholderSecrets
from components.stack_config import ConfigError, Controller, Executor, parse

ID = "6f0a1c9e-8a52-4c7b-9e0d-1b2f3a4c5d6e"
OTHER = "0b6d2c5e-7f41-4c1e-9d3a-5e8f7a6b4c2d"
CREDENTIAL = "0123456789abcdef0123456789abcdef"
SECRET = 'a "secret" # with ; everything'
SECTION: dict[str, Any] = {
    "authUrl": "https://keystone.example.com:5000/v3",
    "applicationCredentialId": CREDENTIAL,
    "routerId": ID,
    "ccmImage": "registry.example.com/ccm:1",
}
KUBECONFIG = json.dumps({"clusters": [{}], "contexts": [{}], "users": [{}]})


def on(**more: Any) -> Any:
    """Config of a stack as Pulumi hands it over; `section`: keys of `openstack` (None: not given)."""
    section = {key: value for key, value in {**SECTION, **more.pop("section", {})}.items() if value is not None}
    values = {
        "cloud": "openstack",
        "cluster": "existing",
        "clusterName": "c",
        "existing": {"clusterId": "prod-1", "networkId": ID, "podCidr": "10.4.0.0/16"},
        "kubeconfig": KUBECONFIG,
        "openstack": section,
        "openstackSecret": SECRET,
        **more,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in values.items()
        if value is not None
    }


def checked(given: Any) -> Any:
    return parse(given, {"kubeconfig", "openstackSecret"})


class Config:
    """A stack's config, as a dynamic provider has it."""

    def __init__(self, given: dict[str, str]) -> None:
        self._given = given

    def get(self, key: str) -> str | None:
        return self._given.get(key)


def test_volumes_are_the_csi_drivers_and_routes_without_a_router_somebody_elses() -> None:
    assert checked(on()).run_by(Executor.VENDOR) == [Controller.VOLUME]
    assert checked(on(section={"routerId": None})).run_by(Executor.VENDOR) == [Controller.ROUTE, Controller.VOLUME]


def test_the_cloud_config_says_what_the_section_says() -> None:
    given = {
        **SECTION,
        "region": "RegionOne",
        "interface": "internal",
        "internalNetworks": ["nodes", "more nodes"],
        "addressSortOrder": ["10.0.0.0/8", "192.168.0.0/16"],
        "loadBalancers": {
            "floatingNetworkId": ID,
            "createMonitor": True,
            "monitorDelay": 7,
            "manageSecurityGroups": True,
            "nodeSelector": ["env=prod", "zone"],
            "classes": {"dmz": {"floatingNetworkId": OTHER, "floatingSubnetTags": ["gold", "v4"]}},
        },
    }

    config = parsed(rendered(given, {"application-credential-secret": SECRET}, "prod-1"))

    assert (config.cluster_id, config.auth_url, config.region) == ("prod-1", SECTION["authUrl"], "RegionOne")
    assert (config.interface, config.router_id) == ("internal", ID)
    assert config.credentials.body()["auth"]["identity"]["application_credential"] == {
        "id": CREDENTIAL,
        "secret": SECRET,
    }
    assert config.networking.internal_networks == {"nodes", "more nodes"}
    assert [str(each) for each in config.networking.sort_order] == ["10.0.0.0/8", "192.168.0.0/16"]
    balancers = config.load_balancers
    assert balancers is not None
    assert (balancers.create_monitor, balancers.monitor_delay) == (True, 7)
    assert balancers.manage_security_groups
    assert balancers.node_selector == ("env=prod", "zone")
    assert balancers.networks.floating_network_id == ID
    assert balancers.classes["dmz"].floating_network_id == OTHER
    assert balancers.classes["dmz"].floating_subnet_tags == "gold,v4"


def test_a_dynamic_provider_gets_the_same_cloud_config() -> None:
    config: Any = Config(on())

    assert cloud_config(config, "prod-1", ID) == rendered(SECTION, {"application-credential-secret": SECRET}, "prod-1")


def test_a_dynamic_provider_trusts_the_authorities_of_its_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = Config(on(section={"caFile": "/only/in/the/daemons/container.pem"}))

    assert parsed(cloud_config(config, "prod-1", ID)).ca_file is None
    monkeypatch.setenv("OS_CACERT", "/etc/company.pem")
    assert parsed(cloud_config(config, "prod-1", ID)).ca_file == "/etc/company.pem"


def test_a_run_without_the_stacks_secrets_makes_no_cloud_config() -> None:
    config: Any = Config(on(openstackSecret="[placeholder]"))

    with pytest.raises(PlaceholderSecrets, match="openstackSecret"):
        cloud_config(config, "prod-1", ID)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (on(section={"authUrl": None}), "openstack.authUrl is null: must be set"),
        (on(section={"authUrl": "https://keystone:5000"}), "Keystone's URL with its version"),
        (on(section={"applicationCredentialId": "x"}), "32 hexadecimal digits"),
        (on(section={"routerId": "router"}), "allowed: an ID"),
        (on(section={"ccmImage": None}), "openstack.ccmImage is null: nodes cannot pull the default image"),
        (on(section={"loadBalancers": {"monitorDelay": 0}}), "monitorDelay"),
        (
            on(section={"loadBalancers": {"monitorDelay": 2}}),
            "monitor-timeout: longer than monitor-delay",
        ),
        (on(openstackSecret=None), "openstackSecret is missing"),
        (on(executors={"volume": "daemon"}), "Cinder's CSI driver manages volumes; allowed: vendor"),
        (on(executors={"route": "daemon"}, section={"routerId": None}), "openstack.routerId is not set"),
        (on(executors={"node": "vendor"}), "OpenStack runs no controllers itself"),
        (
            on(existing={"clusterId": "prod-1", "networkId": "net-1", "podCidr": "10.4.0.0/16"}),
            'existing.networkId is "net-1": not an ID of the cloud; allowed: the UUID of a network',
        ),
    ],
)
def test_a_mistake_is_refused_with_what_is_allowed(given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(given)

    assert message in str(caught.value)


# ----------------------------------------------------------------------------------------------------- a new cluster

NEW: dict[str, Any] = {
    "authUrl": "https://keystone.example.com/v3",
    "kubernetesVersion": "1.36",
    "imageId": ID,
    "externalNetworkId": OTHER,
    "ccmImage": "registry.example.com/ccm:1",
}
PLANE: dict[str, Any] = {"name": "cp", "role": "control-plane", "count": 3, "type": "m1", "zones": ["nova"]}


def new(*pools: dict[str, Any], **more: Any) -> Any:
    """Config of a stack that makes its cluster."""
    section = {**dict.fromkeys(SECTION), **NEW, **more.pop("section", {})}
    given = {"cluster": "new", "existing": None, "kubeconfig": None, "openstackSecret": None, **more}
    return on(nodePools=list(pools) or [PLANE], section=section, **given)


def test_a_new_cluster_has_a_router_for_its_pod_routes() -> None:
    assert checked(new()).run_by(Executor.VENDOR) == [Controller.VOLUME]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (new(section={"imageId": None}), "openstack.imageId is null: must be set"),
        (new(section={"externalNetworkId": None}), "openstack.externalNetworkId is null: must be set"),
        (new(section={"kubernetesVersion": None}), "openstack.kubernetesVersion is null: must be set"),
        (new(section={"kubernetesVersion": "1.30"}), 'openstack.kubernetesVersion is "1.30": allowed: 1.31 or newer'),
        (new(section={"kubernetesVersion": "v1.36"}), "a minor version such as '1.36', quoted"),
        (new(section={"podCidr": "10.0.4.0/22"}), 'openstack.podCidr is "10.0.4.0/22": overlaps the network\'s'),
        (new(section={"serviceCidr": "172.20.1.0/24"}), 'openstack.serviceCidr is "172.20.1.0/24": overlaps'),
        (
            new(section={"authUrl": "https://keystone.example.com:5000/v3"}),
            "openstack.controlPlaneEgress is []: control-plane machines reach only port 443, and Keystone has 5000",
        ),
        (new(section={"simulated": True}), "a site has a cluster already"),
        (new(section={"routerId": ID}), "openstack.routerId is only for `cluster: existing`"),
        (new(section={"applicationCredentialId": CREDENTIAL}), "applicationCredentialId is only for"),
        (new(openstackSecret=SECRET), "openstackSecret is only for `cluster: existing`"),
        (on(section={"imageId": ID}), "openstack.imageId is only for `cluster: new`"),
        (new({**PLANE, "count": 2}), "etcd needs a majority"),
        (new(PLANE, {**PLANE, "name": "more"}), "another pool is the control plane already"),
        (new({**PLANE, "role": "worker"}), "allowed: at least one pool of role control-plane"),
        (new({**PLANE, "ingress": True}), "nodePools[0].ingress is true: label the pool"),
    ],
)
def test_a_mistake_of_a_new_cluster_is_refused_with_what_is_allowed(given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(given)

    assert message in str(caught.value)


def test_keystone_without_tls_has_port_80() -> None:
    with pytest.raises(ConfigError, match="reach only port 443, and Keystone has 80;"):
        checked(new(section={"authUrl": "http://keystone.example.com/v3"}))


def test_keystone_may_have_another_port_where_the_control_plane_reaches_it() -> None:
    section = {"authUrl": "https://keystone.example.com:5000/v3", "controlPlaneEgress": ["192.0.2.0/24"]}

    assert checked(new(section=section)).cloud == "openstack"


def test_the_components_need_settings_for_a_network() -> None:
    with pytest.raises(pulumi.InputPropertyError, match="at least kubernetes_version, image_id, external_network_id"):
        clouds.descriptor("openstack").adapter().network("n", ["nova"], {}, pulumi.ResourceOptions())
