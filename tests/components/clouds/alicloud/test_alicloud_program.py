"""The whole program of the stacks on Alibaba Cloud: what both shapes are made of, and who may do what."""

from __future__ import annotations

import base64
import json
from ipaddress import IPv4Network
from typing import Any

import pytest

from cloud_controller.clouds.alicloud.permissions import actions, statements
from tests.components.stack_runs import RunStack, config, every, opened, program, runner, unguarded, visible

ACK = "alicloud:cs/managedKubernetes:ManagedKubernetes"
ACK_POOL = "alicloud:cs/nodePool:NodePool"
INSTANCE = "alicloud:ecs/instance:Instance"
VSWITCH = "alicloud:vpc/switch:Switch"
SNAT = "alicloud:vpc/snatEntry:SnatEntry"
NAT = "alicloud:vpc/natGateway:NatGateway"
EIP = "alicloud:ecs/eipAddress:EipAddress"
RULE = "alicloud:ecs/securityGroupRule:SecurityGroupRule"
ROLE = "alicloud:ram/role:Role"
POLICY = "alicloud:ram/policy:Policy"
ATTACHMENT = "alicloud:ram/rolePolicyAttachment:RolePolicyAttachment"
SECRET = "alicloud:kms/secret:Secret"
API_SERVER = "pulumi-python:dynamic/cluster:ApiServer"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
SERVICE = "kubernetes:core/v1:Service"
CONTROLLER = "pulumi-python:dynamic/cloudcontroller:CloudController"
MANAGER = "cloud-controller-manager"
PREFIX = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-"
STACKS = ("alicloud-prod", "alicloud-staging")
BESIDE_ACKS = {
    "executors": {"service": "daemon"},
    "ccmImage": "registry.example/ccm:1",
    "sourceRanges": ["198.51.100.0/24"],
}
"""What makes our daemon run beside ACK's."""

PROVIDER_ARN = "acs:ram::1234567890123456:oidc-provider/ack-rrsa-c1"
ISSUER = "https://oidc-ack-cn-hangzhou.oss-cn-hangzhou.aliyuncs.com/c1"
MADE: dict[str, Any] = {
    ACK: {"rrsaMetadata": {"enabled": True, "ramOidcProviderArn": PROVIDER_ARN, "rrsaOidcIssuerUrl": ISSUER}},
    "alicloud:cs/getClusterCredential:getClusterCredential": {"kubeConfig": "A KUBECONFIG OF ACK"},
    EIP: {"ipAddress": "203.0.113.7"},
    NAT: {"snatTableIds": "stb-1"},
    ROLE: {"arn": "acs:ram::1234567890123456:role/the-role"},
    "alicloud:nlb/loadBalancer:LoadBalancer": {"dnsName": "nlb-1.ap-southeast-1.nlb.aliyuncs.com"},
    "tls:index/privateKey:PrivateKey": {"privateKeyPem": "A PRIVATE KEY"},
    "tls:index/selfSignedCert:SelfSignedCert": {"certPem": "A CERTIFICATE"},
    "tls:index/certRequest:CertRequest": {"certRequestPem": "A REQUEST"},
    "tls:index/locallySignedCert:LocallySignedCert": {"certPem": "A CLIENT CERTIFICATE"},
    SERVICE: {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.8"}]}}},
}
"""What Alibaba Cloud and the cluster would answer."""


@pytest.fixture
def run_stack(run_program: Any) -> RunStack:
    """Run `__main__.py` with a stack's config, as if everything was made."""
    return runner(run_program, MADE)


def user_data(recording: Any, name: str) -> str:
    return base64.b64decode(opened(recording.one(INSTANCE, name).inputs["userData"])).decode()


def statements_of(recording: Any, role: str) -> list[dict[str, Any]]:
    return list(json.loads(recording.one(POLICY, role).inputs["policyDocument"])["Statement"])


def container_of(recording: Any, kind: str) -> dict[str, Any]:
    [container] = recording.one(kind, MANAGER).inputs["spec"]["template"]["spec"]["containers"]
    return dict(container)


# ------------------------------------------------------------------------------------------------------- the network


@pytest.mark.parametrize(("stack", "kinds"), [("alicloud-prod", 2), ("alicloud-staging", 1)])
def test_each_zone_has_a_vswitch_for_machines_and_on_ack_one_for_pods(
    stack: str, kinds: int, run_stack: RunStack
) -> None:
    vswitches = every(run_stack(stack), VSWITCH).values()

    zones = [vswitch["zoneId"] for vswitch in vswitches]
    ranges = [IPv4Network(vswitch["cidrBlock"]) for vswitch in vswitches]
    assert sorted(zones) == sorted(kinds * sorted(set(zones))) and len(set(zones)) == 3
    assert not any(a.overlaps(b) for i, a in enumerate(ranges) for b in ranges[:i])


@pytest.mark.parametrize("stack", STACKS)
def test_every_vswitch_reaches_the_internet_by_one_address(stack: str, run_stack: RunStack) -> None:
    recording = run_stack(stack)

    entries = every(recording, SNAT).values()
    assert {entry["sourceVswitchId"] for entry in entries} == {f"{name}-id" for name in every(recording, VSWITCH)}
    assert {entry["snatIp"] for entry in entries} == {"203.0.113.7"}
    assert len(every(recording, EIP)) == 1
    # A zone that comes later must not replace it.
    assert list(recording.one(NAT, f"{stack}-nat").request.ignoreChanges) == ["vswitchId"]


@pytest.mark.parametrize("stack", STACKS)
def test_no_security_group_rule_admits_the_internet(stack: str, run_stack: RunStack) -> None:
    rules = [rule for rule in every(run_stack(stack), RULE).values() if rule["type"] == "ingress"]

    assert [rule for rule in rules if rule.get("cidrIp") == "0.0.0.0/0"] == []
    # Of ranges, load balancers reach only node ports; pods of another node everything, with their own addresses.
    of_nodes = [r for r in rules if r["securityGroupId"] == f"{stack}-nodes-id" and "cidrIp" in r]
    assert {rule["portRange"] for rule in of_nodes if rule["cidrIp"] != "172.20.0.0/16"} == {"30000/32767"}


def test_nodes_reach_only_the_api_server_of_the_control_plane(run_stack: RunStack) -> None:
    plane = of_plane(run_stack("alicloud-staging"), "ingress")

    assert {(rule["ipProtocol"], rule["portRange"]) for rule in plane} == {("tcp", "6443/6443")}


def of_plane(recording: Any, direction: str) -> list[Any]:
    """The rules of the security group of the control plane's machines."""
    rules = every(recording, RULE).values()
    group = "alicloud-staging-control-plane-id"
    return [rule for rule in rules if rule["securityGroupId"] == group and rule["type"] == direction]


def test_control_plane_machines_reach_their_network_the_clouds_services_and_port_443(run_stack: RunStack) -> None:
    rules = of_plane(run_stack("alicloud-staging"), "egress")

    accepted = {(rule["cidrIp"], rule["portRange"]) for rule in rules if rule["policy"] == "accept"}
    assert accepted == {
        ("10.1.0.0/16", "-1/-1"),
        ("172.20.0.0/16", "-1/-1"),
        ("100.64.0.0/10", "-1/-1"),
        ("0.0.0.0/0", "443/443"),
    }
    # Without it, a basic group lets everything out; of equal priority, it would win against the others.
    [dropped] = [rule for rule in rules if rule["policy"] == "drop"]
    assert (dropped["cidrIp"], dropped["ipProtocol"], dropped["priority"]) == ("0.0.0.0/0", "all", 100)
    assert {rule["priority"] for rule in rules if rule is not dropped} == {1}


def test_the_rule_that_drops_comes_after_those_that_accept(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    dropped = recording.one(RULE, "alicloud-staging-control-plane-to-rest")
    accepted = {r.urn for r in recording.registrations if "-control-plane-to-" in r.request.name} - {dropped.urn}
    assert accepted <= recording.dependencies(dropped.urn)


def test_a_stack_may_let_control_plane_machines_out_to_more(run_stack: RunStack) -> None:
    rules = of_plane(run_stack("alicloud-staging", controlPlaneEgress=["192.0.2.0/24", "0.0.0.0/0"]), "egress")

    accepted = {(rule["cidrIp"], rule["portRange"]) for rule in rules if rule["policy"] == "accept"}
    assert {("192.0.2.0/24", "-1/-1"), ("0.0.0.0/0", "-1/-1")} <= accepted


# ----------------------------------------------------------------------------------------------------- logs and audit

BUCKET = "alicloud:oss/bucket:Bucket"
TRAIL = "alicloud:actiontrail/trail:Trail"


def test_the_logs_of_acks_control_plane_are_kept_as_long_as_the_stack_says(run_stack: RunStack) -> None:
    def logged(**more: Any) -> Any:
        return run_stack("alicloud-prod", **more).one(ACK, "alicloud-prod").inputs

    assert "ccm" in logged()["controlPlaneLogComponents"]
    assert logged()["controlPlaneLogTtl"] == "365"
    assert logged(logDays=None)["controlPlaneLogTtl"] == "30"


def test_a_trail_records_every_call_in_a_bucket_that_is_private_encrypted_and_versioned(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod")

    trail = recording.one(TRAIL, "alicloud-prod-audit").inputs
    bucket = recording.one(BUCKET, "alicloud-prod-audit").inputs
    [expiry] = bucket["lifecycleRules"]
    blocked = recording.one("alicloud:oss/bucketPublicAccessBlock:BucketPublicAccessBlock", "alicloud-prod-audit")
    assert (trail["eventRw"], trail["trailRegion"], trail["trailName"]) == ("All", "All", "audit-alicloud-prod")
    assert blocked.inputs["blockPublicAccess"]
    assert blocked.urn in recording.dependencies(recording.one(TRAIL, "alicloud-prod-audit").urn)
    assert bucket["serverSideEncryptionRule"] == {"sseAlgorithm": "AES256"}
    assert bucket["versioning"] == {"status": "Enabled"}
    assert expiry["expirations"] == [{"days": 365}]
    assert expiry["noncurrentVersionExpirations"] == [{"days": 365}]


def test_a_destroy_leaves_the_bucket_of_the_trail(run_stack: RunStack) -> None:
    assert run_stack("alicloud-prod", retain=False).one(BUCKET, "alicloud-prod-audit").request.retainOnDelete


def test_a_stack_makes_no_trail_unless_it_says_so(run_stack: RunStack) -> None:
    assert every(run_stack("alicloud-staging"), TRAIL) == {}


def test_api_sources_enter_by_the_load_balancer_of_the_api(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging", apiSources=["192.168.0.0/24"])

    into = [r["cidrIp"] for r in every(recording, RULE).values() if r["securityGroupId"] == "alicloud-staging-api-id"]
    assert sorted(into) == ["10.1.0.0/16", "192.168.0.0/24"]
    balancer = recording.one("alicloud:nlb/loadBalancer:LoadBalancer", "alicloud-staging-api").inputs
    assert (balancer["addressType"], balancer["securityGroupIds"]) == ("Intranet", ["alicloud-staging-api-id"])


# ------------------------------------------------------------------------------------------------------------- ACK


def test_on_ack_our_ccm_is_in_the_pod_network_behind_a_policy_that_keeps_it_from_metadata(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", executors={"service": "daemon"}, ccmImage="r/i:1")

    [policy] = every(recording, "kubernetes:networking.k8s.io/v1:NetworkPolicy").values()
    [workload] = [w for w in every(recording, DEPLOYMENT).values() if w["metadata"]["namespace"] == "kube-system"]
    template = workload["spec"]["template"]
    assert "hostNetwork" not in template["spec"]
    assert policy["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    assert "100.100.100.200/32" in policy["spec"]["egress"][0]["to"][0]["ipBlock"]["except"]


def test_an_ack_cluster_has_rrsa_no_public_api_and_no_key_in_its_outputs(run_stack: RunStack) -> None:
    cluster = run_stack("alicloud-prod").one(ACK, "alicloud-prod").inputs

    assert (cluster["enableRrsa"], cluster["slbInternetEnabled"], cluster["newNatGateway"]) == (True, False, False)
    assert cluster["skipSetCertificateAuthority"]
    # Only then NetworkPolicies count.
    assert {"name": "terway-eniip", "config": '{"NetworkPolicy":"true"}'} in cluster["addons"]
    assert len(cluster["podVswitchIds"]) == 3
    assert "podCidr" not in cluster


def test_with_a_pod_range_ack_gives_pods_routes_and_no_vswitches(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", podCidr="172.20.0.0/16")

    cluster = recording.one(ACK, "alicloud-prod").inputs
    assert {"name": "flannel"} in cluster["addons"]
    assert (cluster["podCidr"], cluster.get("podVswitchIds")) == ("172.20.0.0/16", None)
    assert len(every(recording, VSWITCH)) == 3


def test_the_autoscaler_and_not_the_program_counts_the_machines_of_an_autoscaled_pool(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod")

    autoscaled = recording.one(ACK_POOL, "alicloud-prod-workers")
    fixed = recording.one(ACK_POOL, "alicloud-prod-system")
    assert autoscaled.inputs["scalingConfig"] == {"enable": True, "minSize": 6, "maxSize": 12}
    assert "desiredSize" not in autoscaled.inputs
    assert list(autoscaled.request.ignoreChanges) == ["desiredSize"]
    assert (fixed.inputs["desiredSize"], list(fixed.request.ignoreChanges)) == ("3", [])


def test_on_ack_the_vendor_runs_everything_and_the_program_has_no_ccm(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod")

    assert not [name for name in every(recording, DEPLOYMENT) if name == MANAGER]
    assert every(recording, ROLE) == {}
    executors = recording.one(CONTROLLER, "cloud-controller").inputs["executors"]
    assert set(executors.values()) == {"vendor"}
    # ACK's controller does not limit the clients of a CLB by source ranges.
    web = recording.one(SERVICE, "web").inputs
    assert web["metadata"]["annotations"] == {f"{PREFIX}address-type": "intranet"}
    assert "loadBalancerClass" not in web["spec"]


def test_beside_acks_own_ccm_ours_serves_only_its_own_classes(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", **BESIDE_ACKS)

    args = container_of(recording, DEPLOYMENT)["args"]
    assert {"--controllers=service", "--require-load-balancer-class"} <= set(args)
    assert recording.one(SERVICE, "web").inputs["spec"]["loadBalancerClass"] == "cloud-controller/nlb"
    data = recording.one("kubernetes:core/v1:Secret", f"{MANAGER}-config").inputs["stringData"]
    # ACK's own serves Services of class alibabacloud.com/nlb.
    assert json.loads(opened(opened(data)["cloud.conf"]))["Global"]["serveNlbClass"] == "false"


def test_beside_acks_own_ccm_the_alerts_are_about_ours(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", **BESIDE_ACKS, monitoring="annotations")

    rules = recording.one("kubernetes:core/v1:ConfigMap", "cloud-controller-alerts").inputs["data"]
    text = str(rules)
    assert 'job="cloud-controller"' in text
    assert 'job="cloud-controller-manager"' not in text


def test_beside_acks_own_ccm_no_object_of_ours_has_the_name_of_one_of_its_objects(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", **BESIDE_ACKS)

    objects = [r for r in recording.registrations if r.request.name.startswith(MANAGER) and "kubernetes:" in r.urn]
    names = {opened(r.inputs)["metadata"]["name"] for r in objects}
    assert names == {"cloud-controller", "system:cloud-controller", "cloud-controller-config"}
    assert "--leader-elect-resource-name=cloud-controller" in container_of(recording, DEPLOYMENT)["args"]


def test_the_demonstrations_load_balancers_are_in_every_zone_and_limit_their_clients(run_stack: RunStack) -> None:
    service = run_stack("alicloud-staging").one(SERVICE, "web").inputs

    zones = [f"ap-southeast-1{zone}" for zone in "abc"]
    assert service["metadata"]["annotations"] == {
        # Its nodes' security group admits only the load balancers' own addresses.
        f"{PREFIX}preserve-client-ip": "off",
        f"{PREFIX}zone-maps": ",".join(f"{zone}:alicloud-staging-{zone}-id" for zone in zones),
    }
    assert service["spec"]["loadBalancerClass"] == "cloud-controller/nlb"
    assert service["spec"]["loadBalancerSourceRanges"] == ["198.51.100.0/24"]


@pytest.mark.parametrize(
    ("stack", "more", "added"),
    [
        ("alicloud-prod", BESIDE_ACKS, False),  # pods of Services that ACK's own CCM serves would get gates too
        ("alicloud-staging", {}, True),
        ("alicloud-staging", {"kubernetesVersion": "1.35"}, False),  # no API server adds them before 1.36
    ],
)
def test_readiness_gates_are_added_only_where_our_ccm_opens_all_of_them(
    stack: str, more: Any, added: bool, run_stack: RunStack
) -> None:
    recording = run_stack(stack, **more)

    found = [r for r in recording.registrations if ":MutatingAdmissionPolicy" in r.request.type]
    assert bool(found) is added


# ---------------------------------------------------------------------------------------------------------- machines


def test_every_machine_requires_metadata_tokens_and_has_an_encrypted_disk(run_stack: RunStack) -> None:
    of_ack = every(run_stack("alicloud-prod"), ACK_POOL).values()
    of_ecs = every(run_stack("alicloud-staging"), INSTANCE).values()

    assert {pool["instanceMetadataOptions"]["httpTokens"] for pool in of_ack} == {"required"}
    assert {(m["httpTokens"], m["httpPutResponseHopLimit"]) for m in of_ecs} == {("required", 1)}
    assert all(each["systemDiskEncrypted"] for each in (*of_ack, *of_ecs))


def test_machines_on_ecs_are_known_by_name_and_provider_id(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    machines = {m["name"]: m["provider_id"] for m in recording.one(CONTROLLER, "cloud-controller").inputs["machines"]}
    assert machines["alicloud-staging-workers-2"] == "ap-southeast-1.alicloud-staging-workers-2-id"
    machine = recording.one(INSTANCE, "alicloud-staging-workers-2").inputs
    assert machine["hostName"] == "alicloud-staging-workers-2"
    # By which the controllers list the cluster's machines.
    assert machine["tags"]["kubernetes.io/cluster"] == "alicloud-staging"


def test_nodes_of_a_self_managed_cluster_wait_for_the_ccm_and_say_which_machine_they_are(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    for name in every(recording, INSTANCE):
        text = user_data(recording, name)
        assert "{name: cloud-provider, value: external}" in text
        assert '{name: provider-id, value: "$REGION.$INSTANCE"}' in text
        assert "INSTANCE=$(imds instance-id)\n" in text
        assert len(text.encode()) < 32 * 1024  # ECS takes no more


def test_kube_controller_manager_leaves_the_ccms_controllers_alone(run_stack: RunStack) -> None:
    text = user_data(run_stack("alicloud-staging"), "alicloud-staging-control-plane-0")

    assert "controllerManager:\n  extraArgs:\n  - {name: cloud-provider, value: external}\n" in text
    assert "name: controllers" not in text


def test_workers_are_replaced_for_another_image_or_type_and_no_machine_for_another_start_script(
    run_stack: RunStack,
) -> None:
    recording = run_stack("alicloud-staging")

    worker = recording.one(INSTANCE, "alicloud-staging-workers-0").request
    plane = recording.one(INSTANCE, "alicloud-staging-control-plane-0").request
    assert list(worker.ignoreChanges) == ["userData"]
    assert set(worker.replaceOnChanges) == {"imageId", "instanceType"}
    assert worker.deleteBeforeReplace
    assert set(plane.ignoreChanges) == {"userData", "imageId"}


@pytest.mark.parametrize("pool", ["control-plane", "workers"])
def test_the_machines_of_a_pool_are_changed_one_after_another(pool: str, run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    machines = [recording.one(INSTANCE, f"alicloud-staging-{pool}-{index}") for index in range(3)]
    assert machines[0].urn in recording.dependencies(machines[1].urn)
    assert machines[1].urn in recording.dependencies(machines[2].urn)


def test_every_machine_on_ecs_drops_what_pods_send_to_its_metadata(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    for name in every(recording, INSTANCE):
        text = user_data(recording, name)
        assert "iptables -w -t raw -I PREROUTING -d 100.100.100.200 -j DROP\n" in text
        assert text.index("enable --now no-metadata-for-pods") < text.index("enable --now containerd")


def test_only_one_control_plane_machine_may_initialise_the_cluster(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    may = ["FIRST=true\n" in user_data(recording, f"alicloud-staging-control-plane-{index}") for index in range(3)]
    assert may == [True, False, False]


def test_the_program_uses_the_cluster_once_its_api_server_answers(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    [server] = [r for r in recording.registrations if r.request.type == API_SERVER]
    waits_for = recording.dependencies(recording.one(DAEMON_SET, MANAGER).urn)
    assert server.inputs["endpoint"] == "https://nlb-1.ap-southeast-1.nlb.aliyuncs.com:6443"
    assert server.urn in waits_for
    assert recording.one(INSTANCE, "alicloud-staging-control-plane-2").urn in waits_for


# ---------------------------------------------------------------------------------------------------------- rights


@pytest.mark.parametrize(
    ("stack", "more", "role", "controllers"),
    [
        ("alicloud-prod", BESIDE_ACKS, f"alicloud-prod-{MANAGER}", ["service"]),
        (
            "alicloud-staging",
            {},
            "alicloud-staging-control-plane",
            ["node", "route", "service", "node-lifecycle"],
        ),
    ],
)
def test_the_ccms_role_allows_exactly_what_its_controllers_call_and_changes_only_in_its_region(
    stack: str, more: Any, role: str, controllers: list[str], run_stack: RunStack
) -> None:
    statements = [s for s in statements_of(run_stack(stack, **more), role) if not s["Action"][0].startswith("kms:")]

    region = config(stack)["alicloud"]["region"]
    assert sorted(action for s in statements for action in s["Action"]) == actions(controllers)
    for statement in statements:
        [resource] = statement["Resource"]
        changes = [a for a in statement["Action"] if not a.partition(":")[2].startswith(("Describe", "Get", "List"))]
        product = statement["Action"][0].partition(":")[0]
        assert resource == (f"acs:{product}:{region}:*:*" if changes else "*")


def test_only_the_ccms_service_account_may_take_its_role(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", **BESIDE_ACKS)

    [trust] = json.loads(recording.one(ROLE, f"alicloud-prod-{MANAGER}").inputs["assumeRolePolicyDocument"])[
        "Statement"
    ]
    assert trust["Principal"] == {"Federated": [PROVIDER_ARN]}
    assert trust["Condition"]["StringEquals"] == {
        "oidc:iss": ISSUER,
        "oidc:aud": "sts.aliyuncs.com",
        "oidc:sub": "system:serviceaccount:kube-system:cloud-controller",
    }


def test_doctor_reads_with_a_role_that_only_its_service_account_may_take(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", **BESIDE_ACKS, doctorSchedule="0 * * * *")

    name, account = "alicloud-prod-cloud-controller-doctor", "cloud-controller-doctor"
    [trust] = json.loads(recording.one(ROLE, name).inputs["assumeRolePolicyDocument"])["Statement"]
    assert trust["Condition"]["StringEquals"]["oidc:sub"] == f"system:serviceaccount:kube-system:{account}"
    assert statements_of(recording, name) == statements("cn-hangzhou", ["service"], reads=True)
    pod = recording.one("kubernetes:batch/v1:CronJob", f"{MANAGER}-doctor").inputs["spec"]["jobTemplate"]["spec"][
        "template"
    ]["spec"]
    environment = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert pod["serviceAccountName"] == account
    assert environment["ALIBABA_CLOUD_ROLE_ARN"] == MADE[ROLE]["arn"]
    assert environment["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"] == PROVIDER_ARN


def test_on_ecs_doctor_reads_quotas_with_the_control_planes_role(run_stack: RunStack) -> None:
    def granted(schedule: str) -> set[str]:
        recording = run_stack("alicloud-staging", doctorSchedule=schedule)
        plane = statements_of(recording, "alicloud-staging-control-plane")
        return {action for each in plane for action in each["Action"]}

    assert granted("0 * * * *") - granted("") == {"quotas:ListProductQuotaDimensions"}


def test_the_ccm_takes_its_role_by_a_token_for_ram_only(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod", **BESIDE_ACKS)

    pod = recording.one(DEPLOYMENT, MANAGER).inputs["spec"]["template"]["spec"]
    [token] = [v["projected"]["sources"][0]["serviceAccountToken"] for v in pod["volumes"] if "projected" in v]
    environment = {each["name"]: each.get("value") for each in container_of(recording, DEPLOYMENT)["env"]}
    assert token["audience"] == "sts.aliyuncs.com"
    assert environment["ALIBABA_CLOUD_ROLE_ARN"] == MADE[ROLE]["arn"]
    assert environment["ALIBABA_CLOUD_OIDC_PROVIDER_ARN"] == PROVIDER_ARN
    assert environment["ALIBABA_CLOUD_OIDC_TOKEN_FILE"] == "/var/run/secrets/cloud/token"
    data = recording.one("kubernetes:core/v1:Secret", f"{MANAGER}-config").inputs["stringData"]
    assert "accessKey" not in opened(opened(data)["cloud.conf"])


def test_self_managed_workers_may_read_only_the_join_token(run_stack: RunStack) -> None:
    allowed = statements_of(run_stack("alicloud-staging"), "alicloud-staging-nodes")

    kept = "acs:kms:ap-southeast-1:*:"
    assert [(s["Action"], s["Resource"]) for s in allowed] == [
        (["kms:GetSecretValue"], [f"{kept}secret/cloud-controller/alicloud-staging/join-token"]),
        (["kms:Decrypt"], [f"{kept}key/{config('alicloud-staging')['alicloud']['kmsKey']}"]),
    ]


def test_secrets_have_the_names_that_machines_and_roles_use(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    names = {each["secretName"] for each in every(recording, SECRET).values()}
    granted = {
        resource.partition(":secret/")[2]
        for policy in every(recording, POLICY)
        for statement in statements_of(recording, policy)
        for resource in statement["Resource"]
        if ":secret/" in resource
    }
    assert granted == names - {"cloud-controller/alicloud-staging/kubeconfig"}
    assert '"cloud-controller/$CLUSTER/$1"' in user_data(recording, "alicloud-staging-workers-0")


@pytest.mark.parametrize("stack", STACKS)
def test_keys_and_kubeconfigs_are_secret_everywhere(stack: str, run_stack: RunStack, is_secret: Any) -> None:
    recording = run_stack(stack)

    shown = visible(recording, is_secret)
    assert "A PRIVATE KEY" not in shown
    assert base64.b64encode(b"A PRIVATE KEY").decode() not in shown
    assert "A KUBECONFIG OF ACK" not in shown
    assert is_secret(recording.outputs["kubeconfig"])


# ---------------------------------------------------------------------------------------------- the rest of the stack


@pytest.mark.parametrize("stack", STACKS)
def test_one_provider_of_the_stacks_region_serves_every_resource(stack: str, run_stack: RunStack) -> None:
    recording = run_stack(stack)

    [provider] = [r for r in recording.registrations if r.request.type == "pulumi:providers:alicloud"]
    of_alicloud = [r for r in recording.registrations if r.request.type.startswith("alicloud:")]
    assert provider.inputs["region"] == config(stack)["alicloud"]["region"]
    assert {r.request.provider.rpartition("::")[0] for r in of_alicloud} == {provider.urn}


def test_the_stacks_protect_key_protects_the_cluster_and_the_address_of_its_way_out(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-prod")

    protected = {r.request.type for r in recording.registrations if r.request.protect}
    assert {ACK, VSWITCH, EIP, "alicloud:vpc/network:Network", SERVICE} <= protected
    assert ACK_POOL not in protected
    assert recording.one("cloudcontroller:index:Cluster", "alicloud-prod").request.retainOnDelete


@pytest.mark.parametrize("stack", STACKS)
def test_kubernetes_objects_are_declared_in_the_form_that_the_state_holds(stack: str, run_stack: RunStack) -> None:
    assert run_stack(stack).respelt() == {}


def test_the_cloud_config_names_the_cluster_and_its_vpc_in_which_it_calls_the_apis(run_stack: RunStack) -> None:
    recording = run_stack("alicloud-staging")

    data = recording.one("kubernetes:core/v1:Secret", f"{MANAGER}-config").inputs["stringData"]
    assert json.loads(opened(opened(data)["cloud.conf"]))["Global"] == {
        "clusterID": "alicloud-staging",
        "region": "ap-southeast-1",
        "vpcid": "alicloud-staging-id",
        "network": "vpc",
    }


@pytest.mark.parametrize(
    ("stack", "more", "workload"),
    [("alicloud-prod", BESIDE_ACKS, DEPLOYMENT), ("alicloud-staging", {}, DAEMON_SET)],
)
def test_the_ccm_keeps_its_rights_and_network_until_its_load_balancers_are_deleted(
    stack: str, more: Any, workload: str, run_stack: RunStack
) -> None:
    recording = run_stack(stack, **more)

    needed = recording.dependencies(recording.one(workload, MANAGER).urn)
    types = {
        ATTACHMENT,
        SNAT,
        RULE,
        "alicloud:ecs/ramRoleAttachment:RamRoleAttachment",
        "alicloud:nlb/listener:Listener",
    }
    needless = {"alicloud-staging-nodes"}  # it runs on the control plane
    left = {r.request.name for r in recording.registrations if r.request.type in types and r.urn not in needed}
    assert {name for name in left if not name.startswith("alicloud-staging-workers")} <= needless


@pytest.mark.parametrize("stack", STACKS)
def test_a_preview_of_an_empty_account_is_whole(stack: str, run_program: Any, unknown: str) -> None:
    recording = run_program(program, config(stack))

    assert recording.one(CONTROLLER, "cloud-controller").inputs["cluster_id"] == unknown
    assert recording.one(SERVICE, "web")


@pytest.mark.parametrize("stack", STACKS)
def test_the_destroy_guard_is_deleted_before_everything_else(stack: str, run_stack: RunStack) -> None:
    assert unguarded(run_stack(stack)) == set()


# ------------------------------------------------------------------------------------------------------- the Services

THEIRS = ["alibabacloud.com/nlb"]
OURS = ["cloud-controller/clb", "cloud-controller/nlb"]


@pytest.mark.parametrize(
    ("stack", "service", "served"),
    [
        ("alicloud-prod", "vendor", THEIRS),
        ("alicloud-prod", "daemon", THEIRS + OURS),
        ("alicloud-staging", "daemon", THEIRS + OURS),
    ],
)
def test_services_may_have_the_classes_that_our_daemon_and_acks_own_ccm_serve(
    stack: str, service: str, served: list[str], run_stack: RunStack
) -> None:
    executors = {**config(stack)["executors"], "service": service}
    settings = {"ccmImage": "registry.example/cloud-controller:0.1.0"} if service == "daemon" else {}

    recording = run_stack(stack, executors=executors, workloads=True, **settings)

    assert recording.one("cloudcontroller:index:LoadBalancerService", "web").inputs["served_classes"] == served
