"""`cloud-controller manifests`: what is in the text, what is not, and what is refused."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cloud_controller import clouds, manifests, rbac
from cloud_controller.cli import commands as cli
from cloud_controller.doctor import cron_job
from tests.cloud_controller.cloud_configs import CONFIGS, TOKEN
from tests.cloud_controller.descriptors import descriptor_of

ROOT = Path(__file__).parents[2]
ROLE = "arn:aws:iam::123456789012:role/ccm"


def options(*more: str, cloud: str = "mycloud") -> list[str]:
    return ["manifests", f"--cloud={cloud}", "--image=registry.example/ccm:1.0.0", "--cluster-cidr=10.20.0.0/16", *more]


def printed(capsys: pytest.CaptureFixture[str], *more: str, cloud: str = "mycloud") -> str:
    assert cli.main(options(*more, cloud=cloud)) == 0
    return capsys.readouterr().out


def objects(text: str) -> dict[str, Any]:
    """By kind, of which there is one each."""
    found = list(yaml.safe_load_all(text))
    by_kind = {each["kind"]: each for each in found}
    assert len(by_kind) == len(found)
    return by_kind


def refused(capsys: pytest.CaptureFixture[str], *more: str, cloud: str = "mycloud") -> str:
    """The last line of what a command prints that fails."""
    try:
        code = cli.main(options(*more, cloud=cloud))
    except SystemExit as ended:
        code = int(str(ended.code))
    out, err = capsys.readouterr()
    assert code in (1, 2)
    assert out == ""
    return err.splitlines()[-1]


def container(text: str, kind: str = "DaemonSet") -> Any:
    (found,) = objects(text)[kind]["spec"]["template"]["spec"]["containers"]
    return found


@pytest.fixture
def cloud_config(tmp_path: Path) -> Path:
    file = tmp_path / "cloud.conf"
    file.write_text(CONFIGS["mycloud"])
    return file


# ----------------------------------------------------------------------------------------------------- what is in it


def test_manifests_contain_a_daemon_set_with_the_options_and_the_rbac_rules_of_its_controllers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, "--controllers=node,service", "--cluster-name=shop")

    assert container(text)["image"] == "registry.example/ccm:1.0.0"
    assert {"--cloud=mycloud", "--controllers=node,service", "--cluster-name=shop"} <= {*container(text)["args"]}
    rules = rbac.rules(["node", "service"], protected=True)
    assert objects(text)["ClusterRole"]["rules"] == [rule.to_json() for rule in rules.cluster]
    assert objects(text)["Role"]["rules"] == [rule.to_json() for rule in rules.namespaced]


def test_readiness_gates_bring_a_flag_rights_and_a_policy_which_a_deletion_removes_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, "--readiness-gates=inject")

    assert "--readiness-gates=true" in container(text)["args"]
    assert "pods/status" in str(objects(text)["ClusterRole"]["rules"])
    assert [*objects(text)][:2] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]
    assert objects(text)["MutatingAdmissionPolicy"]["spec"]["failurePolicy"] == "Ignore"


def test_gates_by_hand_need_no_policy(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--readiness-gates=by-hand")

    assert "--readiness-gates=true" in container(text)["args"]
    assert "pods/status" in str(objects(text)["ClusterRole"]["rules"])
    assert "MutatingAdmissionPolicy" not in objects(text)


def test_the_api_server_judges_annotations_if_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    with_policy = list(yaml.safe_load_all(printed(capsys, "--service-admission=deny")))
    without = list(yaml.safe_load_all(printed(capsys)))

    more = [each["metadata"]["name"] for each in with_policy if each not in without]
    assert more == ["cloud-controller-services", "cloud-controller-services-deny", "cloud-controller-services-warn"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--shared-load-balancers=off"], "the controller runs with --shared-load-balancers=off"),
        (["--shared-load-balancers", "off"], "the controller runs with --shared-load-balancers=off"),
        (["--shared-load-balancers=any"], None),
    ],
)
def test_the_api_server_says_what_the_daemons_options_forbid(
    options: list[str], sentence: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    text = str([*yaml.safe_load_all(printed(capsys, "--service-admission=deny", "--", *options))])

    assert ("cannot be shared" in text) == (sentence is not None)
    assert (sentence or "") in text


@pytest.mark.parametrize("served", ["true", "false"])
def test_the_api_server_says_what_the_cloud_config_forbids(
    served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "cloud.conf"
    lines = ("[Global]", "KubernetesClusterID = a", "ElbSecurityGroup = sg-0e", f"ServeNLBClass = {served}")
    config.write_text("\n".join(lines))

    text = printed(capsys, f"--with-cloud-config={config}", "--service-admission=deny", cloud="aws")

    [policy] = (each["spec"] for each in yaml.safe_load_all(text) if each["kind"] == "ValidatingAdmissionPolicy")
    assert "ElbSecurityGroup sg-0e in the cloud config decides" in str(policy["variables"])
    assert ("service.k8s.aws/nlb" in str(policy["matchConditions"])) == (served == "true")
    assert "ElbSecurityGroup" not in printed(capsys, "--service-admission=deny", cloud="aws")


def test_service_admission_needs_the_service_controller(capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(capsys, "--service-admission=warn", "--controllers=node")

    assert error == "cloud-controller: service-admission: warn, but controller service is not chosen (allowed: off)"


@pytest.mark.parametrize("more", [[], ["--readiness-gates=off"], ["--readiness-gates=inject", "--controllers=node"]])
def test_without_gates_or_without_the_service_controller_there_are_no_rights_for_pods(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, *more)

    assert not [each for each in container(text)["args"] if "readiness" in each]
    assert "pods" not in str(objects(text)["ClusterRole"]["rules"])
    assert "MutatingAdmissionPolicy" not in objects(text)


@pytest.mark.integration
def test_manifests_are_identical_for_identical_options() -> None:
    def run(seed: str) -> bytes:
        command = [sys.executable, "-m", "cloud_controller.cli", *options("--env=B=2", "--env=A=1")]
        return subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, cwd=ROOT, capture_output=True, check=True
        ).stdout

    assert run("0") == run("1")


@pytest.mark.parametrize(("machines", "least"), [(1, None), (3, 2), (0, 1)])
def test_the_disruption_budget_allows_eviction_of_one_daemon_at_a_time(
    machines: int, least: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    found = objects(printed(capsys, f"--control-plane-machines={machines}"))

    budget = found.get("PodDisruptionBudget")
    assert (budget and budget["spec"]["minAvailable"]) == least


def test_with_a_managed_control_plane_two_daemons_run_on_different_workers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = objects(printed(capsys, "--control-plane-machines=0"))

    assert "DaemonSet" not in found
    assert found["Deployment"]["spec"]["replicas"] == 2
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert "nodeSelector" not in pod
    assert pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]


def test_a_ccm_that_nodes_and_metadata_can_do_without_is_in_the_pod_network_behind_a_policy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = objects(
        printed(capsys, "--control-plane-machines=0", f"--role={ROLE}", "--controllers=service", cloud="aws")
    )

    template = found["Deployment"]["spec"]["template"]
    policy = found["NetworkPolicy"]
    assert "hostNetwork" not in template["spec"]
    assert policy["metadata"]["namespace"] == "kube-system"
    assert policy["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    assert [*found].index("NetworkPolicy") < [*found].index("Deployment")


@pytest.mark.parametrize(
    ("cloud", "more"),
    [
        ("aws", ["--control-plane-machines=0", "--controllers=service"]),  # its credentials are the machine's
        ("aws", ["--control-plane-machines=0", f"--role={ROLE}", "--controllers=service,node"]),
        ("aws", ["--control-plane-machines=0", f"--role={ROLE}", "--controllers=service,route"]),
        ("aws", [f"--role={ROLE}", "--controllers=service"]),  # beside an API server of the cluster's own
        ("mycloud", ["--control-plane-machines=0"]),
    ],
)
def test_other_ccms_are_in_the_network_of_their_node(
    cloud: str, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = objects(printed(capsys, *more, cloud=cloud))

    workload = found.get("Deployment") or found["DaemonSet"]
    assert workload["spec"]["template"]["spec"]["hostNetwork"]
    assert "NetworkPolicy" not in found


@pytest.mark.parametrize(
    "more",
    [
        ["--control-plane-machines=1"],
        ["--control-plane-machines=0"],
        ["--control-plane-machines=0", f"--role={ROLE}", "--controllers=service"],
    ],
)
def test_in_every_shape_the_daemon_runs_as_nobody_without_capabilities_on_a_read_only_filesystem(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = objects(printed(capsys, *more, cloud="aws"))

    pod = (found.get("Deployment") or found["DaemonSet"])["spec"]["template"]["spec"]
    [daemon] = pod["containers"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65534)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert daemon["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not [mount for mount in daemon["volumeMounts"] if not mount["readOnly"]]


def test_logs_are_json_unless_an_option_says_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    args = container(printed(capsys))["args"]
    own = container(printed(capsys, "--", "--logging-format=text"))["args"]

    assert "--logging-format=json" in args
    assert own.index("--logging-format=json") < own.index("--logging-format=text")  # the last one counts


def test_a_role_is_taken_by_the_service_accounts_token(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, f"--role={ROLE}", "--env=AWS_REGION=eu-central-1", cloud="aws")

    assert objects(text)["ServiceAccount"]["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": ROLE}
    env = {each["name"]: each.get("value") for each in container(text)["env"]}
    assert (env["AWS_ROLE_ARN"], env["AWS_REGION"]) == (ROLE, "eu-central-1")
    assert env["AWS_WEB_IDENTITY_TOKEN_FILE"].startswith(container(text)["volumeMounts"][1]["mountPath"])


def test_claims_get_a_class_and_a_driver_only_where_the_daemon_runs_volumes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    storage = {"StorageClass", "CSIDriver"}

    assert storage <= objects(printed(capsys)).keys()
    assert not storage & objects(printed(capsys, "--controllers=*,-volume")).keys()
    assert not storage & objects(printed(capsys, cloud="aws")).keys()


def test_manifests_accept_more_run_options_after_two_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--", "--require-load-balancer-class", "--service-resync-period=1m")

    assert {"--require-load-balancer-class", "--service-resync-period=1m"} <= {*container(text)["args"]}


def test_the_role_grants_access_to_the_daemons_lease(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--leader-elect-resource-name=ours")

    assert "--leader-elect-resource-name=ours" in container(text)["args"]
    assert objects(text)["Role"]["rules"][1]["resourceNames"] == ["ours"]


@pytest.mark.parametrize("text", ["1e3", "-.5", "0o17", "y", "N", "yes"])
def test_manifests_quote_strings_that_kubectl_would_read_as_something_else(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert f"value: '{text}'\n" in printed(capsys, f"--env=X={text}")


def test_a_cloud_of_somebody_else_needs_no_parts_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clouds, "descriptor", lambda _: descriptor_of(lambda _: pytest.fail("not made"), "private"))

    assert "--cloud=private" in container(printed(capsys, cloud="private"))["args"]


# ---------------------------------------------------------------------------------------------------- cloud config


def test_without_a_cloud_config_the_text_says_how_to_make_the_secret_that_the_pods_mount(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys)

    assert "Secret" not in objects(text)
    (volume,) = objects(text)["DaemonSet"]["spec"]["template"]["spec"]["volumes"]
    name = volume["secret"]["secretName"]
    assert f"#   kubectl --namespace kube-system create secret generic {name} --from-file=cloud.conf=FILE\n" in text


def test_with_a_cloud_config_the_secret_is_printed_and_a_new_config_restarts_the_pods(
    cloud_config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, f"--with-cloud-config={cloud_config}")

    secret = objects(text)["Secret"]
    assert secret["stringData"] == {"cloud.conf": CONFIGS["mycloud"]}
    assert text.count(TOKEN) == 1
    annotations = objects(text)["DaemonSet"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["checksum/cloud-config"] == hashlib.sha256(cloud_config.read_bytes()).hexdigest()


def test_a_cloud_config_that_the_daemon_would_refuse_is_refused_without_its_token(
    cloud_config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud_config.write_text(CONFIGS["mycloud"].replace("endpoint", "endpont"))

    line = refused(capsys, f"--with-cloud-config={cloud_config}")

    assert "did you mean 'endpoint'?" in line
    assert TOKEN not in line


# ------------------------------------------------------------------------------------------------------- kustomize


def test_a_kustomize_base_contains_the_printed_manifests_one_file_per_object(
    cloud_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = (f"--with-cloud-config={cloud_config}", "--control-plane-machines=3")
    base = tmp_path / "made" / "base"

    assert printed(capsys, *given, f"--kustomize={base}") == ""

    kustomization = yaml.safe_load((base / "kustomization.yaml").read_text())
    assert (kustomization["apiVersion"], kustomization["kind"]) == ("kustomize.config.k8s.io/v1beta1", "Kustomization")
    assert {*kustomization["resources"]} == {path.name for path in base.iterdir()} - {"kustomization.yaml"}
    files = [yaml.safe_load((base / name).read_text()) for name in kustomization["resources"]]
    assert files == list(yaml.safe_load_all(printed(capsys, *given)))


@pytest.mark.integration
@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl on PATH")
def test_kubectl_builds_a_kustomize_base_to_the_printed_manifests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, f"--kustomize={tmp_path}")

    built = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True, timeout=60, check=True)

    assert objects(built.stdout) == objects(printed(capsys))


def test_the_secret_file_of_a_kustomize_base_is_readable_only_by_its_owner(
    cloud_config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret.yaml").touch(mode=0o644)

    printed(capsys, f"--with-cloud-config={cloud_config}", f"--kustomize={tmp_path}")

    assert (tmp_path / "secret.yaml").stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("cloud", "more", "told"),
    [
        ("mycloud", ["--role=r"], "role: cloud mycloud does not support roles for pods"),
        ("aws", ["--controllers=volume"], "the cloud does not support controller volume"),
        ("aws", ["--cluster-cidr="], "cluster-cidr: missing; controller route requires it"),
        ("aws", ["--", "--controllers=node"], "controllers: not allowed after `--`"),
        ("aws", ["--", "--kubeconfig=/k"], "kubeconfig: not allowed after `--`"),
        ("aws", ["--", "--secure-port", "1"], "secure-port: not allowed after `--`"),
        ("aws", ["--", "--node-monitor-perid=5s"], "did you mean --node-monitor-period?"),
        ("aws", ["--", "--node-monitor-period=5"], "argument --node-monitor-period: not a valid duration"),
        ("aws", ["--env=1=2"], "argument --env: not NAME=VALUE"),
        ("aws", ["--env=POD_IP=192.0.2.1"], "env: the manifests already set POD_IP"),
        ("aws", [f"--role={ROLE}", "--env=AWS_ROLE_ARN=x"], "env: the manifests already set AWS_ROLE_ARN"),
        ("awss", [], "did you mean 'aws'?"),
    ],
)
def test_options_that_the_daemon_would_reject_are_rejected_before_manifests_are_printed(
    cloud: str, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refused(capsys, *more, cloud=cloud)


def test_a_cloud_config_that_names_a_file_is_refused_because_the_pods_lack_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("t")
    config = tmp_path / "cloud.conf"
    config.write_text(f"[Global]\nendpoint = http://127.0.0.1:1\ntoken-file = {tmp_path / 'token'}\ncluster-id = c\n")

    told = refused(capsys, f"--with-cloud-config={config}", cloud="mycloud")

    assert "token-file: names a file that does not exist in the pods" in told


def test_the_tolerations_let_the_daemon_start_before_any_node_is_initialised() -> None:
    assert {each["key"] for each in manifests.TOLERATIONS} >= {
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node-role.kubernetes.io/control-plane",
        "node.kubernetes.io/not-ready",
    }


@pytest.mark.parametrize(
    ("more", "tolerated"),
    [
        (["--control-plane-machines=0"], True),
        (["--control-plane-machines=0", f"--role={ROLE}", "--controllers=service"], False),
    ],
    ids=["in its node's network", "in the pod network"],
)
def test_a_daemon_may_start_where_routes_are_missing_if_it_needs_none(
    more: list[str], tolerated: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    # Unlike a DaemonSet's, a Deployment's pods do not tolerate this taint by themselves. All nodes may have it.
    pod = objects(printed(capsys, *more, cloud="aws"))["Deployment"]["spec"]["template"]["spec"]

    keys = [each["key"] for each in pod["tolerations"]]
    assert ("node.kubernetes.io/network-unavailable" in keys) == tolerated


# -------------------------------------------------------------------------------------------------------------- docs


@pytest.mark.parametrize("page", ["install.md", "beside-others.md"])
def test_every_option_on_a_page_of_installing_exists(page: str) -> None:
    parser, _ = cli._parsers()
    commands: Any = next(action.choices for action in parser._actions if action.dest == "command_name")
    known = {option for command in commands.values() for option in command._option_string_actions}
    # Those of other programs stand in their command lines; in the text, an option is ours.
    text = re.sub(
        r"^( *kubectl|pip) .*", "", (ROOT / "docs" / page).read_text().replace("\\\n", " "), flags=re.MULTILINE
    )
    text = re.sub(r"`(kubectl|kubelet|pulumi) [^`]*`", "", text)

    named = set(re.findall(r"[` ](--[a-z][a-z-]+)", text))
    assert named
    assert named - known <= {"--cloud-provider", "--allocate-node-cidrs", "--server-side"}


def test_renamed_objects_refer_to_each_other_and_to_nothing_of_another_ccm() -> None:
    made = manifests.make(manifests.Daemon("ccm:1", ["run"], rbac.rules(["service"])), machines=0, checksum=None)

    renamed = [manifests.renamed(each, "ours") for each in (*made, manifests.cloud_config("text"))]

    assert {each["metadata"]["name"] for each in renamed} == {"ours", "system:ours", "ours-config"}
    [workload] = [each for each in renamed if each["kind"] == "Deployment"]
    pod = workload["spec"]["template"]
    assert pod["spec"]["serviceAccountName"] == "ours"
    assert workload["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"] == {"k8s-app": "ours"}
    # Only rules, which name resources of the cluster, keep the usual names.
    assert manifests.NAME not in str([each for each in renamed if each["kind"] not in ("Role", "ClusterRole")])


def test_renamed_roles_are_for_the_lease_that_the_arguments_name() -> None:
    daemon = manifests.Daemon("ccm:1", ["run"], rbac.rules(["service"], lease="cloud-controller-manager"))
    doctor = cron_job.rights(daemon.rules, "cloud-controller-manager")

    for rules in (daemon.rules, doctor):
        role = next(each for each in manifests.account_with("x", {}, rules) if each["kind"] == "Role")
        renamed = manifests.renamed(role, "ours")["rules"]
        of_leases = [each for each in renamed if "resourceNames" in each and each["resources"] == ["leases"]]
        assert [each["resourceNames"] for each in of_leases] == [["cloud-controller-manager"]]


# ------------------------------------------------------------------------------------------------ doctor on a schedule


def doctor(text: str) -> dict[str, Any]:
    """Its objects, by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(text) if each["metadata"]["name"].endswith("-doctor")}


def test_doctor_runs_with_an_account_of_its_own_and_one_run_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(printed(capsys, "--doctor-schedule=0 * * * *"))

    spec = found["CronJob"]["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"]) == ("0 * * * *", "Forbid")
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    assert [each["name"] for each in found["ClusterRoleBinding"]["subjects"]] == [pod["serviceAccountName"]]


def test_doctor_is_as_hardened_as_the_daemon(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--doctor-schedule=0 * * * *")

    [daemon_set] = [each for each in yaml.safe_load_all(text) if each["kind"] == "DaemonSet"]
    daemon = daemon_set["spec"]["template"]["spec"]
    pod = doctor(text)["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["securityContext"] == daemon["securityContext"]
    assert pod["containers"][0]["securityContext"] == daemon["containers"][0]["securityContext"]


def test_doctor_takes_no_room_from_other_pods(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(printed(capsys, "--doctor-schedule=0 * * * *"))

    assert "priorityClassName" not in found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_doctors_pods_are_not_the_ccms(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--doctor-schedule=0 * * * *")

    [daemon_set] = [each for each in yaml.safe_load_all(text) if each["kind"] == "DaemonSet"]
    labels = doctor(text)["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert not daemon_set["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_doctor_may_only_read_and_ask(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor(printed(capsys, "--doctor-schedule=0 * * * *"))

    for role in (found["ClusterRole"], found["Role"]):
        for rule in role["rules"]:
            assert {*rule["verbs"]} <= {"get", "list"} or rule["resources"] == ["subjectaccessreviews"]


def test_doctor_takes_a_role_of_its_own_by_its_own_token(capsys: pytest.CaptureFixture[str]) -> None:
    role = "arn:aws:iam::123456789012:role/doctor"
    text = printed(capsys, "--doctor-schedule=0 * * * *", f"--role={ROLE}", f"--doctor-role={role}", cloud="aws")

    found = doctor(text)
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    [token] = [each["projected"]["sources"][0]["serviceAccountToken"] for each in pod["volumes"] if "projected" in each]
    assert found["ServiceAccount"]["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": role}
    assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    assert token["audience"] == "sts.amazonaws.com"
    assert {"name": "AWS_ROLE_ARN", "value": role} in pod["containers"][0]["env"]
    assert ROLE not in str(found)


def test_a_doctor_in_the_pod_network_reaches_what_the_ccm_does_and_its_gateway_and_serves_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pods = ["--control-plane-machines=0", f"--role={ROLE}", "--controllers=service"]
    job = ["--doctor-schedule=0 * * * *", f"--doctor-role={ROLE}", "--doctor-push-gateway=gateway.monitoring:9091"]
    text = printed(capsys, *pods, *job, cloud="aws")

    found = doctor(text)
    of_ccm, of_doctor = (each["spec"] for each in yaml.safe_load_all(text) if each["kind"] == "NetworkPolicy")
    template = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]
    assert "hostNetwork" not in template["spec"]
    assert of_doctor["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    assert (of_doctor["policyTypes"], of_doctor["ingress"]) == (["Ingress", "Egress"], [])
    everything, dns = of_doctor["egress"]
    assert everything["to"] == of_ccm["egress"][0]["to"]
    assert [each["port"] for each in everything["ports"]] == [443, 6443, 9091]
    assert dns == of_ccm["egress"][1]
    assert [*found].index("NetworkPolicy") < [*found].index("CronJob")


def test_a_doctor_in_its_nodes_network_has_no_policy_which_would_not_concern_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "NetworkPolicy" not in doctor(printed(capsys, "--doctor-schedule=0 * * * *"))


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://gateway.monitoring:9091/base", 9091),
        ("gateway.monitoring:9091", 9091),
        ("http://gateway", 80),
        ("https://gateway", 443),
        ("https://[fd00::1]:9091", 9091),
        ("http://gateway:port", None),
        ("http://", None),
    ],
)
def test_the_port_of_a_gateway_is_that_of_its_url(url: str, port: int | None) -> None:
    assert cron_job.gateway_port(url) == port


def test_without_a_schedule_there_is_no_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(printed(capsys)) == {}


@pytest.mark.parametrize(
    ("given", "cloud", "said"),
    [
        (["--doctor-schedule=hourly"], "mycloud", "'hourly' is not a schedule of five fields"),
        (["--doctor-schedule=0 * * * *", f"--role={ROLE}"], "aws", "a role exactly where the CCM has one"),
        (["--doctor-schedule=0 * * * *", f"--doctor-role={ROLE}"], "aws", "a role exactly where the CCM has one"),
        ([f"--role={ROLE}", f"--doctor-role={ROLE}"], "aws", "doctor-role: needs --doctor-schedule"),
        (
            ["--doctor-schedule=0 * * * *", f"--role={ROLE}", f"--doctor-role={ROLE}"],
            "mycloud",
            "does not support roles for pods",
        ),
        (["--doctor-push-gateway=http://gateway"], "mycloud", "needs --doctor-schedule"),
        (["--doctor-schedule=0 * * * *", "--doctor-push-gateway=http://a:b"], "mycloud", "'http://a:b' is not a URL"),
    ],
)
def test_a_doctor_that_could_not_work_is_refused(
    given: list[str], cloud: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *given, cloud=cloud)


# --------------------------------------------------------------------------------------------------------- credentials


def test_the_last_day_of_the_credential_is_an_annotation_and_an_option_of_the_daemon(
    capsys: pytest.CaptureFixture[str], cloud_config: Path
) -> None:
    text = printed(capsys, f"--with-cloud-config={cloud_config}", "--credential-expires=2027-01-31")

    assert objects(text)["Secret"]["metadata"]["annotations"] == {manifests.EXPIRES: "2027-01-31"}
    assert "--credential-expires=2027-01-31" in container(text)["args"]
