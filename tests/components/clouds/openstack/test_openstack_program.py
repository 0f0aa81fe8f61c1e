"""The whole program of stack openstack-prod: what it is made of, and who may do what."""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import pytest

from cloud_controller.clouds.openstack.config import parse
from cloud_controller.clouds.openstack.permissions import DOCTOR, SECURITY_GROUPS, access_rules
from tests.components.stack_runs import RunStack, config, every, opened, program, runner, unguarded, visible

STACK = "openstack-prod"
CREDENTIAL = "openstack:identity/applicationCredential:ApplicationCredential"
FLOATING_IP = "openstack:networking/floatingIp:FloatingIp"
GROUP = "openstack:networking/secGroup:SecGroup"
INSTANCE = "openstack:compute/instance:Instance"
KUBECONFIG = "openstack:keymanager/secretV1:SecretV1"
LISTENER = "openstack:loadbalancer/listener:Listener"
LOAD_BALANCER = "openstack:loadbalancer/loadBalancer:LoadBalancer"
MEMBER = "openstack:loadbalancer/member:Member"
NETWORK = "openstack:networking/network:Network"
PORT = "openstack:networking/port:Port"
ROUTER_INTERFACE = "openstack:networking/routerInterface:RouterInterface"
RULE = "openstack:networking/secGroupRule:SecGroupRule"
SERVER_GROUP = "openstack:compute/serverGroup:ServerGroup"
SUBNET = "openstack:networking/subnet:Subnet"
API_SERVER = "pulumi-python:dynamic/cluster:ApiServer"
CONTROLLER = "pulumi-python:dynamic/cloudcontroller:CloudController"
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
SECRET = "kubernetes:core/v1:Secret"
SERVICE = "kubernetes:core/v1:Service"
MANAGER = "cloud-controller-manager"
CONTROLLERS = ["node", "route", "service", "node-lifecycle"]

MADE: dict[str, Any] = {
    CREDENTIAL: {"secret": "the-secret-of-keystone"},
    FLOATING_IP: {"address": "203.0.113.7"},
    LOAD_BALANCER: {"vipAddress": "10.0.3.9", "vipPortId": "port-of-the-vip"},
    INSTANCE: {"accessIpV4": "10.0.0.21"},
    SERVICE: {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.8"}]}}},
    "openstack:networking/getNetwork:getNetwork": {"name": "public"},
    "tls:index/certRequest:CertRequest": {"certRequestPem": "A REQUEST"},
    "tls:index/locallySignedCert:LocallySignedCert": {"certPem": "A CLIENT CERTIFICATE"},
    "tls:index/privateKey:PrivateKey": {"privateKeyPem": "A PRIVATE KEY", "publicKeyPem": "A PUBLIC KEY"},
    "tls:index/selfSignedCert:SelfSignedCert": {"certPem": "A CERTIFICATE"},
}
"""What OpenStack and the cluster would answer."""


@pytest.fixture
def run_stack(run_program: Any) -> RunStack:
    """Run `__main__.py` with a stack's config, as if everything was made."""
    return runner(run_program, MADE)


def user_data(recording: Any, name: str) -> str:
    return str(opened(recording.one(INSTANCE, name).inputs["userData"]))


def rules(recording: Any, group: str, direction: str) -> set[tuple[Any, ...]]:
    """Of a group: whose address, to which protocol and ports."""
    return {
        (
            rule.get("remoteIpPrefix") or rule["remoteGroupId"],
            rule.get("protocol"),
            rule.get("portRangeMin"),
            rule.get("portRangeMax"),
        )
        for rule in every(recording, RULE).values()
        if rule["securityGroupId"] == f"{STACK}-{group}-id" and rule["direction"] == direction
    }


# ------------------------------------------------------------------------------------------------------- the network


def test_machines_of_every_zone_are_in_one_subnet_behind_the_router(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    [(name, subnet)] = every(recording, SUBNET).items()
    [joined] = every(recording, ROUTER_INTERFACE).values()
    assert (subnet["networkId"], subnet["cidr"]) == (f"{STACK}-id", "10.0.0.0/16")
    # Forced: the CCM's routes would keep the router in the subnet.
    assert joined == {"routerId": f"{STACK}-id", "subnetId": f"{name}-id", "forceDestroy": True}
    of_machines = [port["fixedIps"] for port in every(recording, PORT).values()]
    assert of_machines == [[{"subnetId": f"{name}-id"}]] * 9


def test_machines_start_once_their_network_leads_out(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    joined = recording.one(ROUTER_INTERFACE, STACK).urn
    assert all(
        joined in recording.dependencies(recording.one(INSTANCE, name).urn) for name in every(recording, INSTANCE)
    )


def test_security_groups_have_no_default_rules_and_admit_the_internet_nowhere(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    assert all(group["deleteDefaultRules"] for group in every(recording, GROUP).values())
    admitted = [rule for rule in every(recording, RULE).values() if rule["direction"] == "ingress"]
    assert {rule["remoteIpPrefix"] for rule in admitted if "remoteIpPrefix" in rule} == {"10.0.0.0/16", "172.20.0.0/16"}
    # A rule with neither is for everybody.
    assert all("remoteIpPrefix" in rule or "remoteGroupId" in rule for rule in admitted)


def test_load_balancers_reach_only_node_ports_of_nodes_and_the_api_server(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    def from_network(group: str) -> set[tuple[Any, ...]]:
        return {rule[1:] for rule in rules(recording, group, "ingress") if rule[0] == "10.0.0.0/16"}

    assert from_network("nodes") == {(protocol, 30000, 32767) for protocol in ("tcp", "udp", "sctp")}
    assert from_network("control-plane") == {("tcp", 6443, 6443)}


def test_control_plane_machines_reach_the_cluster_port_443_dns_and_the_time(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    assert rules(recording, "control-plane", "egress") == {
        ("10.0.0.0/16", None, None, None),
        ("172.20.0.0/16", None, None, None),
        ("0.0.0.0/0", "tcp", 443, 443),
        ("0.0.0.0/0", "tcp", 53, 53),
        ("0.0.0.0/0", "udp", 53, 53),
        ("0.0.0.0/0", "udp", 123, 123),
    }
    groups = [every(recording, PORT)[f"{STACK}-control-plane-{index}"]["securityGroupIds"] for index in range(3)]
    # What another group lets out, would be let out.
    assert groups == [[f"{STACK}-control-plane-id"]] * 3


def test_a_stack_may_let_control_plane_machines_out_to_more(run_stack: RunStack) -> None:
    recording = run_stack(STACK, controlPlaneEgress=["192.0.2.0/24"])

    assert ("192.0.2.0/24", None, None, None) in rules(recording, "control-plane", "egress")


def test_no_range_has_two_rules_for_all_outgoing_traffic(run_stack: RunStack) -> None:
    given = ["10.0.0.0/16", "172.20.0.0/16", "192.0.2.0/24", "192.0.2.0/24"]

    recording = run_stack(STACK, controlPlaneEgress=given)

    # Not by name: two of one name are the mistake.
    declared = [opened(r.inputs) for r in recording.registrations if r.request.type == RULE]
    ranges = [
        rule["remoteIpPrefix"]
        for rule in declared
        if rule["securityGroupId"] == f"{STACK}-control-plane-id"
        and rule["direction"] == "egress"
        and "protocol" not in rule
    ]
    assert sorted(ranges) == ["10.0.0.0/16", "172.20.0.0/16", "192.0.2.0/24"]


# ---------------------------------------------------------------------------------------------------- the API server


def test_the_api_server_has_a_floating_ip_for_the_stacks_sources_only(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    floating = recording.one(FLOATING_IP, f"{STACK}-api").inputs
    assert (floating["pool"], floating["portId"]) == ("public", "port-of-the-vip")
    assert recording.one(LISTENER, f"{STACK}-api").inputs["allowedCidrs"] == ["10.0.0.0/16", "198.51.100.0/24"]
    [server] = every(recording, API_SERVER).values()
    assert server["endpoint"] == "https://203.0.113.7:6443"
    # Machines use the address inside; the certificate is for both.
    text = user_data(recording, f"{STACK}-control-plane-0")
    assert "ENDPOINT=10.0.3.9\n" in text and "SANS=203.0.113.7\n" in text


def test_without_sources_the_api_server_is_only_in_the_network(run_stack: RunStack) -> None:
    recording = run_stack(STACK, apiSources=[])

    assert every(recording, FLOATING_IP) == {}
    assert recording.one(LISTENER, f"{STACK}-api").inputs["allowedCidrs"] == ["10.0.0.0/16"]
    [server] = every(recording, API_SERVER).values()
    assert server["endpoint"] == "https://10.0.3.9:6443"


def test_every_control_plane_machine_is_a_member_of_the_apis_load_balancer(run_stack: RunStack) -> None:
    members = every(run_stack(STACK), MEMBER)

    assert set(members) == {f"{STACK}-control-plane-{index}" for index in range(3)}
    assert {(m["address"], m["protocolPort"], m["poolId"]) for m in members.values()} == {
        ("10.0.0.21", 6443, f"{STACK}-api-id")
    }


# ---------------------------------------------------------------------------------------------------------- machines


def test_machines_of_a_control_plane_are_on_different_hosts_and_workers_if_there_are_enough(
    run_stack: RunStack,
) -> None:
    recording = run_stack(STACK)

    policies = {name: group["policies"] for name, group in every(recording, SERVER_GROUP).items()}
    assert policies == {f"{STACK}-control-plane": "anti-affinity", f"{STACK}-workers": "soft-anti-affinity"}
    for name, machine in every(recording, INSTANCE).items():
        assert machine["schedulerHints"] == [{"group": f"{name.rpartition('-')[0]}-id"}]


def test_machines_are_spread_over_the_zones(run_stack: RunStack) -> None:
    zones = {name: machine["availabilityZone"] for name, machine in every(run_stack(STACK), INSTANCE).items()}

    assert [zones[f"{STACK}-control-plane-{index}"] for index in range(3)] == ["az1", "az2", "az3"]


def test_machines_are_known_by_name_and_provider_id(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    machines = {m["name"]: m["provider_id"] for m in recording.one(CONTROLLER, "cloud-controller").inputs["machines"]}
    assert machines[f"{STACK}-workers-2"] == f"openstack:///{STACK}-workers-2-id"
    assert len(machines) == 9


def test_nodes_wait_for_the_ccm_and_say_which_server_they_are(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    for name in every(recording, INSTANCE):
        text = user_data(recording, name)
        assert "{name: cloud-provider, value: external}" in text
        assert '{name: provider-id, value: "openstack:///$INSTANCE"}' in text
        assert f"NODE={name}\n" in text
        assert len(base64.b64encode(text.encode())) < 65535  # Nova takes no more


def test_kube_controller_manager_leaves_the_ccms_controllers_alone(run_stack: RunStack) -> None:
    text = user_data(run_stack(STACK), f"{STACK}-control-plane-0")

    assert "controllerManager:\n  extraArgs:\n  - {name: cloud-provider, value: external}\n" in text
    assert "name: controllers" not in text


def test_every_machine_drops_what_pods_send_to_its_metadata(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    for name in every(recording, INSTANCE):
        text = user_data(recording, name)
        assert "iptables -w -t raw -I PREROUTING -d 169.254.169.254 -j DROP\n" in text
        assert text.index("enable --now no-metadata-for-pods") < text.index("enable --now containerd")


def test_only_one_control_plane_machine_may_initialise_the_cluster(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    may = ["FIRST=true\n" in user_data(recording, f"{STACK}-control-plane-{index}") for index in range(3)]
    assert may == [True, False, False]


def test_workers_are_replaced_for_another_image_or_flavor_and_no_machine_for_another_start_script(
    run_stack: RunStack,
) -> None:
    recording = run_stack(STACK)

    worker = recording.one(INSTANCE, f"{STACK}-workers-0").request
    plane = recording.one(INSTANCE, f"{STACK}-control-plane-0").request
    assert list(worker.ignoreChanges) == ["userData"]
    assert set(worker.replaceOnChanges) == {"imageId", "flavorName"}
    assert set(plane.ignoreChanges) == {"userData", "imageId", "flavorName"}
    assert not plane.replaceOnChanges


def test_a_machine_that_is_replaced_frees_its_port_for_the_new_one(run_stack: RunStack) -> None:
    machines = [r for r in run_stack(STACK).registrations if r.request.type == INSTANCE]

    assert all(machine.request.deleteBeforeReplace for machine in machines)
    assert all(machine.inputs["vendorOptions"] == {"detachPortsBeforeDestroy": True} for machine in machines)


def test_an_update_leaves_the_address_pairs_and_groups_that_the_ccm_writes_into_ports(run_stack: RunStack) -> None:
    ports = [r for r in run_stack(STACK).registrations if r.request.type == PORT]

    assert {tuple(port.request.ignoreChanges) for port in ports} == {("allowedAddressPairs", "securityGroupIds")}


@pytest.mark.parametrize(("pool", "count"), [("control-plane", 3), ("workers", 6)])
def test_the_machines_of_a_pool_are_changed_one_after_another(pool: str, count: int, run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    machines = [recording.one(INSTANCE, f"{STACK}-{pool}-{index}") for index in range(count)]
    for before, after in pairwise(machines):
        assert before.urn in recording.dependencies(after.urn)


def test_the_program_uses_the_cluster_once_its_api_server_answers(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    [server] = [r for r in recording.registrations if r.request.type == API_SERVER]
    waits_for = recording.dependencies(recording.one(DAEMON_SET, MANAGER).urn)
    assert server.urn in waits_for
    assert recording.one(INSTANCE, f"{STACK}-control-plane-2").urn in waits_for


# ----------------------------------------------------------------------------------------------- rights and secrets


def test_the_ccms_credential_allows_exactly_what_its_controllers_call(run_stack: RunStack) -> None:
    credential = run_stack(STACK).one(CREDENTIAL, f"{STACK}-{MANAGER}").inputs

    assert credential["accessRules"] == access_rules(CONTROLLERS)
    assert not credential.get("unrestricted")
    assert credential["roles"] == ["member", "load-balancer_member"]  # Octavia's policy asks for the latter


@pytest.mark.parametrize("now", [True, False])
def test_the_ccms_credential_allows_changes_of_security_groups_where_the_ccm_manages_them_or_did(
    now: bool, run_stack: RunStack
) -> None:
    recording = run_stack(STACK, loadBalancers={"manageSecurityGroups": now})

    called = access_rules([*CONTROLLERS, SECURITY_GROUPS])
    assert recording.one(CREDENTIAL, f"{STACK}-{MANAGER}").inputs["accessRules"] == called


def test_the_ccms_credential_lets_doctor_see_quotas_where_doctor_runs_in_the_cluster(run_stack: RunStack) -> None:
    recording = run_stack(STACK, doctorSchedule="0 * * * *")

    called = access_rules([*CONTROLLERS, DOCTOR])
    assert recording.one(CREDENTIAL, f"{STACK}-{MANAGER}").inputs["accessRules"] == called


def test_the_stack_says_which_roles_the_ccms_credential_has(run_stack: RunStack) -> None:
    recording = run_stack(STACK, credentialRoles=["member"])

    assert recording.one(CREDENTIAL, f"{STACK}-{MANAGER}").inputs["roles"] == ["member"]


def test_another_day_of_expiry_makes_another_credential_though_the_cluster_is_protected(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    credential = recording.one(CREDENTIAL, f"{STACK}-{MANAGER}")
    day = config(STACK)["openstack"]["credentialExpires"]
    assert credential.inputs["expiresAt"] == f"{day}T23:59:59Z"
    assert not credential.request.protect
    # Keystone would refuse the new one beside the old one.
    assert "name" not in credential.inputs
    annotations = recording.one(SECRET, f"{MANAGER}-config").inputs["metadata"]["annotations"]
    assert annotations["cloud-controller/credential-expires"] == day


def test_certificates_are_renewed_though_the_cluster_is_protected(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    protected = {
        r.request.name for r in recording.registrations if r.request.type.startswith("tls:") and r.request.protect
    }
    assert protected == {f"{STACK}-{name}" for name in ("ca", "etcd-ca", "front-proxy-ca", "service-account-tokens")}
    assert not recording.one(KUBECONFIG, f"{STACK}-kubeconfig").request.protect


def test_workers_get_nothing_secret_but_what_they_join_by(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    worker, plane = (user_data(recording, f"{STACK}-{pool}-0") for pool in ("workers", "control-plane"))
    assert "JOINER=" in worker and "PKI=" not in worker
    assert "PKI=" in plane
    for secret in ("the-secret-of-keystone", base64.b64encode(b"the-secret-of-keystone").decode()):
        assert secret not in worker + plane
    join = recording.one("tls:index/certRequest:CertRequest", f"{STACK}-join").inputs["subject"]
    assert join["organization"] == "system:bootstrappers:kubeadm:default-node-token"


def test_keys_credentials_and_kubeconfigs_are_secret_everywhere(run_stack: RunStack, is_secret: Any) -> None:
    recording = run_stack(STACK)

    shown = visible(recording, is_secret)
    for secret in ("A PRIVATE KEY", "the-secret-of-keystone"):
        assert secret not in shown
        assert base64.b64encode(secret.encode()).decode() not in shown
    assert is_secret(recording.outputs["kubeconfig"])
    assert is_secret(recording.one(KUBECONFIG, f"{STACK}-kubeconfig").inputs["payload"])
    assert all(is_secret(machine["userData"]) for machine in every(recording, INSTANCE).values())


# ---------------------------------------------------------------------------------------------- the rest of the stack


def test_the_cloud_config_is_made_of_what_the_program_made(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    data = recording.one(SECRET, f"{MANAGER}-config").inputs["stringData"]
    found = parse(opened(opened(data)["cloud.conf"]))
    section = config(STACK)["openstack"]
    assert (found.cluster_id, found.auth_url, found.region) == (STACK, section["authUrl"], section["region"])
    assert found.credentials.body()["auth"]["identity"]["application_credential"] == {
        "id": f"{STACK}-{MANAGER}-id",
        "secret": "the-secret-of-keystone",
    }
    assert found.router_id == f"{STACK}-id"
    assert found.load_balancers is not None
    assert found.load_balancers.networks.floating_network_id == section["externalNetworkId"]
    assert found.load_balancers.create_monitor


def test_one_provider_of_the_stacks_cloud_serves_every_resource(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    [provider] = [r for r in recording.registrations if r.request.type == "pulumi:providers:openstack"]
    made = [r for r in recording.registrations if r.request.type.startswith("openstack:")]
    assert provider.inputs["authUrl"] == config(STACK)["openstack"]["authUrl"]
    assert {r.request.provider.rpartition("::")[0] for r in made} == {provider.urn}


def test_the_stacks_protect_key_protects_network_and_addresses(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    protected = {r.request.type for r in recording.registrations if r.request.protect}
    assert {NETWORK, SUBNET, FLOATING_IP, LOAD_BALANCER, SERVICE} <= protected
    assert INSTANCE not in protected


def test_kubernetes_objects_are_declared_in_the_form_that_the_state_holds(run_stack: RunStack) -> None:
    assert run_stack(STACK).respelt() == {}


def test_the_ccm_keeps_its_rights_and_network_until_its_load_balancers_are_deleted(run_stack: RunStack) -> None:
    recording = run_stack(STACK)

    needed = recording.dependencies(recording.one(SERVICE, "web").urn)
    types = {CREDENTIAL, KUBECONFIG, LISTENER, MEMBER, ROUTER_INTERFACE, RULE}
    assert {r.request.name for r in recording.registrations if r.request.type in types and r.urn not in needed} == set()


def test_a_preview_of_an_empty_project_is_whole(run_program: Any, unknown: str) -> None:
    # Without sources, nothing is asked of the cloud.
    recording = run_program(program, config(STACK, apiSources=[]))

    assert recording.one(CONTROLLER, "cloud-controller").inputs["cluster_id"] == unknown
    assert recording.one(SERVICE, "web")


def test_the_destroy_guard_is_deleted_before_everything_else(run_stack: RunStack) -> None:
    assert unguarded(run_stack(STACK)) == set()
