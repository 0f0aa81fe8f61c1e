"""Stack `aws-local`, from nothing to load balancers with targets and back to an empty account, on a simulated AWS.

The tests share one site and run in this order. No request goes through a load balancer: they forward nothing.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_controller.kube import DEPLOYMENTS, NODES, PODS, SERVICES, PatchType, Resource, name
from local import processes
from local.api_process import API
from tests.e2e.aws_stack import REGION, STACK, AwsStack
from tests.e2e.breaking.changes import BreakAnywhere, changed
from tests.e2e.breaking.manager import NAME, SYSTEM, without_right
from tests.e2e.breaking.services import service
from tests.e2e.local_stack import eventually
from tests.e2e.patient import Patient

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
SHUTDOWN = "node.cloudprovider.kubernetes.io/shutdown"
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", True)
JOBS = Resource("batch", "v1", "jobs", "Job", True)
PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"
OWN, CLASSIC = "own", "classic"
"""Services that are created outside of the stack."""


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsStack]:
    """The stack, brought up once for the module."""
    stack = AwsStack(tmp_path_factory.mktemp("aws"))
    # Once a year: the tests start doctor themselves.
    stack.stack.configure("doctorSchedule", "0 0 1 1 *")
    try:
        stack.stack.run("up")
        yield stack
    finally:
        stack.site.down()


def nodes(aws: AwsStack) -> dict[str, dict[str, Any]]:
    return {name(each): each for each in aws.kube.list(NODES).items}


def taints(aws: AwsStack, node: str) -> list[str]:
    """The keys of a node's taints."""
    return keys_of_taints(nodes(aws)[node])


def keys_of_taints(node: dict[str, Any]) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints", [])]


def remove_a_route(aws: AwsStack) -> None:
    """Delete the pod route of one instance by hand."""
    ec2 = aws.aws("ec2")
    for table in ec2.describe_route_tables()["RouteTables"]:
        for route in table["Routes"]:
            if route.get("InstanceId"):
                ec2.delete_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock=route["DestinationCidrBlock"])
                return


def remove_a_target(aws: AwsStack, of: str) -> str:
    """Deregister one instance from each target group of a Service by hand; returns its id."""
    gone = sorted(aws.targets(of))[0]
    for group in aws.target_groups(of):
        aws.aws("elbv2").deregister_targets(TargetGroupArn=group["TargetGroupArn"], Targets=[{"Id": gone}])
    return gone


def register(aws: AwsStack, of: str, instance: str) -> None:
    """Register an instance with each target group of a Service by hand."""
    for group in aws.target_groups(of):
        aws.aws("elbv2").register_targets(TargetGroupArn=group["TargetGroupArn"], Targets=[{"Id": instance}])


def initialised(aws: AwsStack) -> set[str]:
    """The nodes without the uninitialized taint."""
    return {node for node, each in nodes(aws).items() if UNINITIALIZED not in keys_of_taints(each)}


def balanced(aws: AwsStack) -> list[bool]:
    """Whether exactly the running machines are targets, for each Service of the stack."""
    return [aws.targets(service) == aws.ids() for service in ("web", "echo")]


def own_service(aws: AwsStack, service: str = OWN, **annotations: str) -> None:
    """A Service for the stack's pods of `web`, with these annotations."""
    selector = aws.kube.get(SERVICES, "web", "default")["spec"]["selector"]
    aws.kube.create(
        SERVICES,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, "namespace": "default", "annotations": annotations},
            "spec": {
                "type": "LoadBalancer",
                "selector": selector,
                "ports": [{"port": 8081, "targetPort": "main"}],
                "loadBalancerSourceRanges": ["127.0.0.0/8"],
            },
        },
    )


def annotate(aws: AwsStack, **annotations: str | None) -> None:
    """Change annotations of an own Service; None removes one."""
    aws.kube.patch(SERVICES, OWN, {"metadata": {"annotations": annotations}}, "default", type=PatchType.MERGE)


def address(aws: AwsStack, service: str) -> str | None:
    """The address in the Service's status."""
    status = aws.kube.get(SERVICES, service, "default").get("status", {}).get("loadBalancer", {})
    return next((each["hostname"] for each in status.get("ingress", [])), None)


def test_every_instance_is_an_initialised_node(aws: AwsStack) -> None:
    instances = aws.instances()

    found = nodes(aws)

    assert len(instances) == 3
    assert set(found) == set(instances) == initialised(aws)
    for node, instance in instances.items():
        zone = instance["Placement"]["AvailabilityZone"]
        labels = found[node]["metadata"]["labels"]
        addresses = [(each["type"], each["address"]) for each in found[node]["status"]["addresses"]]
        assert found[node]["spec"]["providerID"] == f"aws:///{zone}/{instance['InstanceId']}"
        assert labels["topology.kubernetes.io/zone"] == zone
        assert labels["topology.kubernetes.io/region"] == REGION
        assert labels["node.kubernetes.io/instance-type"] == "m7i.large"
        assert ("InternalIP", instance["PrivateIpAddress"]) in addresses


def test_the_nodes_are_in_three_zones(aws: AwsStack) -> None:
    zones = {instance["Placement"]["AvailabilityZone"] for instance in aws.instances().values()}

    assert zones == {f"{REGION}{zone}" for zone in "abc"}


def test_every_node_has_a_pod_route(aws: AwsStack) -> None:
    instances = aws.instances()

    expected = {each["spec"]["podCIDR"]: instances[node]["InstanceId"] for node, each in nodes(aws).items()}

    eventually(lambda: aws.routes() == expected, "the daemon has written them")


def test_the_daemon_runs_as_pods_of_the_cluster_without_a_key_of_aws(aws: AwsStack) -> None:
    pods = [each for each in aws.kube.list(PODS).items if name(each).startswith("cloud-controller-manager")]

    environment = [variable for pod in pods for each in pod["spec"]["containers"] for variable in each.get("env", [])]

    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert "AWS_WEB_IDENTITY_TOKEN_FILE" in [variable["name"] for variable in environment]
    assert not [variable for variable in environment if "SECRET" in variable["name"] or "KEY" in variable["name"]]


def test_the_driver_of_volumes_has_a_role_for_this_cluster_alone(aws: AwsStack) -> None:
    iam = aws.aws("iam")
    [role] = [each["RoleName"] for each in iam.list_roles()["Roles"] if "-ebs-csi-driver-" in each["RoleName"]]

    tags = {each["Key"]: each["Value"] for each in iam.get_role(RoleName=role)["Role"]["Tags"]}
    policies = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]

    assert tags["eks-cluster-name"] == STACK
    assert [each["PolicyName"] for each in policies] == ["AmazonEBSCSIDriverEKSClusterScopedPolicy"]


def test_the_log_of_the_daemon_comes_through_the_api_server(aws: AwsStack) -> None:
    pods = aws.kube.list(PODS, "kube-system").items
    logs = [aws.stack.run("logs", "--pod", str(pod["metadata"]["name"])) for pod in pods]

    assert any('"msg":"leading"' in log for log in logs)


@pytest.mark.parametrize("service", ["web", "echo"])
def test_a_service_has_a_network_load_balancer_with_all_nodes_and_with_groups(aws: AwsStack, service: str) -> None:
    balancer = aws.load_balancer(service)

    assert balancer is not None
    assert balancer["Type"] == "network"
    assert balancer["SecurityGroups"]
    assert len(balancer["AvailabilityZones"]) == 3
    assert address(aws, service) == balancer["DNSName"]
    eventually(lambda: aws.targets(service) == aws.ids(), "all nodes are targets, also those that came after it")


def test_no_output_claims_that_a_simulated_load_balancer_answers(aws: AwsStack) -> None:
    outputs = aws.outputs()

    assert "webUrl" not in outputs
    assert outputs["kubeconfig"] == "[secret]"


def test_no_secret_of_the_account_is_in_the_state_or_on_a_command_line(aws: AwsStack) -> None:
    secret = aws.site.credentials[1]
    written = [each for each in aws.site.folder.root.glob("stacks/**/*") if each.is_file()]
    lines = [Path(f"/proc/{each['pid']}/cmdline").read_text() for each in aws.site.processes()]

    assert written
    assert not [each for each in written if secret.encode() in each.read_bytes()]
    assert not [line for line in lines if secret in line]


def test_up_again_changes_nothing(aws: AwsStack) -> None:
    assert aws.stack.changes("up") == {}


def test_refresh_finds_nothing_else(aws: AwsStack) -> None:
    assert aws.stack.changes("refresh") == {}


@pytest.fixture(scope="module")
def patient(aws: AwsStack, tmp_path_factory: pytest.TempPathFactory) -> Patient:
    """What doctor says of the stack, with the key of its user."""
    key, secret = aws.site.credentials
    environment = {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    return Patient("aws", aws.kube, aws.kubeconfig, tmp_path_factory.mktemp("doctor"), environment)


def test_doctor_finds_nothing_in_the_healthy_cluster(patient: Patient) -> None:
    patient.recovered()


def test_a_scheduled_doctor_reads_with_its_own_role_and_finds_nothing(aws: AwsStack, patient: Patient) -> None:
    template = aws.kube.get(CRON_JOBS, f"{NAME}-doctor", SYSTEM)["spec"]["jobTemplate"]
    container = template["spec"]["template"]["spec"]["containers"][0]
    container["args"] += ["--output=json", "--grace=1s"]
    started = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": "now", "namespace": SYSTEM}}

    aws.kube.create(JOBS, started | {"spec": template["spec"]})
    ended = ("succeeded", "failed")
    eventually(lambda: {*ended} & {*aws.kube.get(JOBS, "now", SYSTEM).get("status", {})}, "the Job has ended")

    [pod] = [name(each) for each in aws.kube.list(PODS, SYSTEM).items if name(each).startswith("now-")]
    log = aws.stack.run("logs", "--pod", pod)
    aws.kube.delete(JOBS, "now", SYSTEM)
    patient.last = json.loads(log[log.index('{\n  "findings"') :])
    assert patient.complaints() == []
    [doctors] = [each["Arn"] for each in aws.aws("iam").list_roles()["Roles"] if "-doctor-" in each["RoleName"]]
    # What the simulator refuses to all whom the role does not trust.
    assert {"name": "AWS_ROLE_ARN", "value": doctors} in container["env"]
    # Dry runs would tell of this role's rights, not of the CCM's.
    reason = out_of_reach(patient)
    assert f"assumed-role/{doctors.rpartition('/')[2]}/" in reason
    assert reason.endswith(f"and the CCM as {ccms_role(aws)}")


def out_of_reach(patient: Patient) -> str:
    """What the latest report says that check `cloud-rights` could not ask."""
    (reason,) = (each["reason"] for each in patient.last["outOfReach"] if each["check"] == "cloud-rights")
    return str(reason)


def ccms_role(aws: AwsStack) -> str:
    """The ARN of the role that the CCM's pods have."""
    container = aws.kube.get(DEPLOYMENTS, NAME, SYSTEM)["spec"]["template"]["spec"]["containers"][0]
    return str(next(each["value"] for each in container["env"] if each["name"] == "AWS_ROLE_ARN"))


def test_doctor_with_the_ccms_role_tries_its_changes_and_finds_a_right_that_it_lacks(
    aws: AwsStack, tmp_path: Path
) -> None:
    iam, role = aws.aws("iam"), ccms_role(aws)
    lent = aws.aws("sts").assume_role(RoleArn=role, RoleSessionName="doctor")["Credentials"]
    keys = {"ACCESS_KEY_ID": "AccessKeyId", "SECRET_ACCESS_KEY": "SecretAccessKey", "SESSION_TOKEN": "SessionToken"}
    environment = {f"AWS_{name}": lent[key] for name, key in keys.items()}
    ccm = Patient("aws", aws.kube, aws.kubeconfig, tmp_path, environment)
    routes = aws.routes()

    ccm.examined("--only=cloud-rights")

    assert ccm.complaints() == []
    assert "by dry runs CreateRoute, DeleteRoute, ModifyInstanceAttribute, CreateSecurityGroup" in out_of_reach(ccm)
    denied = {"RoleName": role.rpartition("/")[2], "PolicyName": "denied"}
    statement = {"Effect": "Deny", "Action": "ec2:DeleteRoute", "Resource": "*"}
    iam.put_role_policy(**denied, PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    try:
        ccm.examined("--only=cloud-rights")
    finally:
        iam.delete_role_policy(**denied)
    (finding,) = ccm.last["findings"]
    (evidence,) = finding["evidence"]
    assert evidence.startswith("AWS: ec2 DeleteRoute: UnauthorizedOperation")
    assert aws.routes() == routes


def test_doctor_names_a_stopped_ccm_before_what_it_leaves_undone(aws: AwsStack, patient: Patient) -> None:
    def stop(deployment: dict[str, Any]) -> None:
        deployment["spec"]["replicas"] = 0

    with changed(aws, DEPLOYMENTS, NAME, SYSTEM, stop):
        eventually(lambda: not [pod for pod in aws.kube.list(PODS, SYSTEM).items if name(pod).startswith(NAME)], "none")
        remove_a_route(aws)
        target = remove_a_target(aws, "web")
        patient.wait_for(("ccm-pods", NAME), ("routes", "route/"), ("backends", "default/web"))

        assert patient.last["findings"][0]["check"] == "ccm-pods"
        # What no list of AWS shows, the daemon finds within the hour only.
        register(aws, "web", target)

    patient.recovered()


@pytest.mark.parametrize(
    ("break_it", "check", "subject"),
    [
        (without_right("services", "list"), "kubernetes-rights", ""),
        (service("misspelt", {f"{PREFIX}shceme": "internal"}), "load-balancers", "default/misspelt"),
        (service("unserved", loadBalancerClass="example.com/other"), "load-balancers", "default/unserved"),
    ],
    ids=["a right is missing", "an annotation is misspelt", "no controller serves the class"],
)
def test_doctor_names_a_breakage_as_a_first_cause(
    aws: AwsStack, patient: Patient, break_it: BreakAnywhere, check: str, subject: str
) -> None:
    with break_it(aws):
        patient.wait_for_first((check, subject))

    patient.recovered()


def test_doctor_says_that_aws_does_not_accept_a_key(aws: AwsStack, tmp_path: Path) -> None:
    wrong = {"AWS_ACCESS_KEY_ID": aws.site.credentials[0], "AWS_SECRET_ACCESS_KEY": "wrong"}
    patient = Patient("aws", aws.kube, aws.kubeconfig, tmp_path, wrong)

    assert patient.examined() == 4

    assert [each["check"] for each in patient.last["findings"] if not each["followsFrom"]] == ["cloud-api"]


def test_an_added_machine_is_a_node_with_a_route_and_a_target_of_every_load_balancer(aws: AwsStack) -> None:
    aws.stack.scale_workers(4)

    aws.stack.run("up")

    assert len(aws.ids()) == 4
    eventually(lambda: initialised(aws) == set(aws.instances()), "four initialised nodes")
    eventually(lambda: set(aws.routes().values()) == aws.ids(), "a route to each")
    eventually(lambda: balanced(aws) == [True, True], "they are the targets of every load balancer")


def test_a_removed_machine_leaves_no_node_no_route_and_no_target(aws: AwsStack) -> None:
    aws.stack.scale_workers(3)

    aws.stack.run("up")

    assert len(aws.ids()) == 3
    eventually(lambda: set(nodes(aws)) == set(aws.instances()), "three nodes")
    eventually(lambda: set(aws.routes().values()) == aws.ids(), "a route to each")
    eventually(lambda: balanced(aws) == [True, True], "they are the targets of every load balancer")


def test_a_changed_annotation_changes_the_load_balancer_in_place(aws: AwsStack) -> None:
    own_service(aws, **{f"{PREFIX}type": "nlb"})
    eventually(lambda: aws.targets(OWN) == aws.ids(), "a network load balancer with targets")
    before = aws.load_balancer(OWN)
    assert before is not None
    assert aws.load_balancer_attributes(OWN)["load_balancing.cross_zone.enabled"] == "false"

    annotate(aws, **{f"{PREFIX}cross-zone-load-balancing-enabled": "true"})

    key = "load_balancing.cross_zone.enabled"
    eventually(lambda: aws.load_balancer_attributes(OWN)[key] == "true", "the attribute is set")
    after = aws.load_balancer(OWN)
    assert after is not None
    assert after["LoadBalancerArn"] == before["LoadBalancerArn"]


def test_another_type_makes_a_new_load_balancer_and_the_old_one_leaves_nothing(aws: AwsStack) -> None:
    before = aws.load_balancer(OWN)
    assert before is not None

    annotate(aws, **{f"{PREFIX}type": None})

    # The old one is deleted only after the new one exists, so one of them exists throughout.
    eventually(lambda: aws.classic_load_balancer(OWN) is not None, "a classic load balancer")
    classic = aws.classic_load_balancer(OWN)
    assert classic is not None
    eventually(lambda: aws.load_balancer(OWN) is None, "the network load balancer is gone")
    eventually(lambda: aws.target_groups(OWN) == [], "its target groups are gone")
    eventually(lambda: address(aws, OWN) == classic["DNSName"], "the Service's address is the new one's")

    def registered() -> set[str]:
        balancer = aws.classic_load_balancer(OWN) or {"Instances": []}
        return {each["InstanceId"] for each in balancer["Instances"]}

    eventually(lambda: registered() == aws.ids(), "all nodes are its instances")


def test_a_deleted_service_leaves_neither_load_balancer_nor_security_group(aws: AwsStack) -> None:
    aws.kube.delete(SERVICES, OWN, "default")

    def left() -> list[str]:
        groups = aws.aws("ec2").describe_security_groups()["SecurityGroups"]
        return [each["GroupName"] for each in groups if each["GroupName"].startswith(f"k8s-default-{OWN}-")]

    eventually(lambda: aws.classic_load_balancer(OWN) is None, "the classic load balancer is gone")
    eventually(lambda: left() == [], "its security groups are gone")


def test_the_daemons_role_has_every_right_that_it_needs(aws: AwsStack) -> None:
    log = aws.site.folder.log(API).read_text().splitlines()

    refused = [line for line in log if "refused: AccessDenied" in line or "refused: UnauthorizedOperation" in line]
    # A test took this right away for a moment; doctor has said before that the role has it.
    assert [line for line in refused if not line.endswith("DeleteRoute refused: UnauthorizedOperation")] == []


def test_a_kill_of_aws_itself_loses_nothing(aws: AwsStack) -> None:
    process = processes.find(aws.site.folder.process_record(API))
    assert process is not None
    process.signal(signal.SIGKILL)
    assert process.wait(60)

    assert aws.stack.changes("up") == {}


def test_a_killed_machine_is_a_stopped_instance_whose_node_is_kept_and_marked(aws: AwsStack) -> None:
    node, instance = next(iter(aws.instances().items()))
    process = processes.find(aws.site.folder.process_record(instance["InstanceId"]))
    assert process is not None

    process.signal(signal.SIGKILL)

    eventually(lambda: aws.site.crashed_machines() == [node], "the instance is stopped")
    eventually(lambda: SHUTDOWN in taints(aws, node), "the node has the taint")


def test_after_a_stop_up_finds_everything_as_it_was(aws: AwsStack) -> None:
    aws.stack.run("stop")
    assert aws.site.processes() == []

    assert aws.stack.changes("up") == {}

    assert len(aws.ids()) == 3
    eventually(lambda: initialised(aws) == set(aws.instances()), "three initialised nodes")
    eventually(
        lambda: not [node for node, each in nodes(aws).items() if SHUTDOWN in keys_of_taints(each)],
        "none is marked any more",
    )


def test_down_names_undeclared_services_and_stops_before_the_first_deletion(aws: AwsStack) -> None:
    own_service(aws, OWN, **{f"{PREFIX}type": "nlb"})
    own_service(aws, CLASSIC)
    eventually(lambda: aws.load_balancer(OWN) and aws.classic_load_balancer(CLASSIC), "both have their load balancers")

    shown = aws.stack.run("down", expect=1)

    assert f"Service default/{CLASSIC}" in shown and f"Service default/{OWN}" in shown
    assert "Service default/web" not in shown
    assert len(aws.ids()) == 3
    assert aws.load_balancer("web") and aws.load_balancer(OWN) and aws.classic_load_balancer(CLASSIC)


def test_down_with_deletion_of_undeclared_services_leaves_the_account_empty(aws: AwsStack) -> None:
    left = aws.stack.processes()

    said = aws.down("--delete-unmanaged")

    assert "the account is empty" in said
    assert not aws.site.folder.cloud.exists()
    assert aws.stack.running(left) == []
