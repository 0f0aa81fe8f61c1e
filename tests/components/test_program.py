"""The whole program of the project's stacks: resources and URNs, what is secret, who waits for whom, what is kept."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from components.load_balancer_service import LoadBalancerService
from components.stack_config import NAMESPACE
from tests.components.stack_runs import unguarded, visible

ROOT = Path(__file__).parents[2]
URNS = Path(__file__).parent / "urns_of_stack_local.txt"
TOKEN = "a-token-that-nobody-may-see"

ADDRESS = "pulumi-python:dynamic/cloudcontroller:ServiceAddress"
SERVICE = "kubernetes:core/v1:Service"
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
BUDGET = "kubernetes:policy/v1:PodDisruptionBudget"
BALANCED = "cloudcontroller:index:LoadBalancerService"
CONTROLLER = "pulumi-python:dynamic/cloudcontroller:CloudController"
GUARD = "pulumi-python:dynamic/cloudcontroller:DestroyGuard"
NETWORK = "pulumi-python:dynamic/mycloud:Network"
CLUSTER = "pulumi-python:dynamic/mycloud:Cluster"
MACHINE = "pulumi-python:dynamic/mycloud:Machine"

MADE: dict[str, Any] = {
    NETWORK: {"pod_cidr": "10.20.0.0/16"},
    CLUSTER: {"kubeconfig": "kubeconfig: a-secret"},
    MACHINE: {"zone": "zone-a", "region": "local"},
    SERVICE: {"status": {"loadBalancer": {"ingress": [{"ip": "127.19.0.10"}]}}},
}
"""What the cloud and the cluster would answer."""


def config(stack: str = "local", **more: Any) -> dict[str, Any]:
    """A stack with what the site adds."""
    file = yaml.safe_load((ROOT / f"stacks/Pulumi.{stack}.yaml").read_text())
    own = {key.removeprefix(f"{NAMESPACE}:"): value for key, value in file["config"].items()}
    site = {"mycloud": {"endpoint": "http://127.16.0.1:7070"}, "mycloudToken": TOKEN}
    return {"executors": {}, "workloads": False, "protect": False, **own, **site, **more}


@pytest.fixture
def run_stack(run_program: Any) -> Callable[..., Any]:
    """Run `__main__.py` with a stack's config: `run_stack(made=True, stack="mycloud-ha", workloads=False, ...)`."""

    def run(*, made: bool = False, **more: Any) -> Any:
        return run_program(lambda: runpy.run_path(str(ROOT / "__main__.py")), config(**more), MADE if made else None)

    return run


def test_the_program_finds_every_resource_of_older_states(run_stack: Any) -> None:
    """The file has every URN that a resource of stack local ever had: lines are added, none is taken away."""
    held = set(URNS.read_text().split())

    recording = run_stack()

    lost, new = sorted(held - recording.known_as()), sorted(set(recording.urns) - held)
    assert not lost, (
        f"states hold {lost}, which the program has no more: each would be deleted and made anew in every stack. "
        "Renamed or moved: give it opts.aliases (docs/pulumi-program.md, Names). Gone on purpose: take its line out of "
        f"{URNS.name}"
    )
    assert not new, f"the program makes {new}: add a line for each to {URNS.name}, so that it is found for ever"


def test_an_alias_of_a_component_covers_its_parts(run_program: Any) -> None:
    """The way that docs/pulumi-program.md tells: an alias at the component; its parts inherit it."""
    arguments: Any = {"cloud": "mycloud", "selector": {"app": "shop"}, "ports": [{"port": 80}]}
    before = run_program(lambda: LoadBalancerService("shop", arguments))

    def renamed(opts: pulumi.ResourceOptions | None) -> Any:
        return run_program(lambda: LoadBalancerService("store", arguments, opts=opts))

    lost = set(before.urns) - renamed(None).known_as()
    kept = set(before.urns) - renamed(pulumi.ResourceOptions(aliases=[pulumi.Alias(name="shop")])).known_as()

    assert len(lost) == 2
    assert not kept


@pytest.mark.parametrize("stack", ["local", "mycloud-ha"])
def test_kubernetes_objects_are_declared_in_the_form_that_the_state_holds(stack: str, run_stack: Any) -> None:
    """Without what the Kubernetes provider's check drops, and with quantities as it spells them."""
    assert run_stack(stack=stack, workloads=True).respelt() == {}


def test_only_secrets_hold_the_token(run_stack: Any, is_secret: Any) -> None:
    recording = run_stack(made=True)

    assert TOKEN not in visible(recording, is_secret)
    data = recording.one("kubernetes:core/v1:Secret", "cloud-controller-manager-config").inputs["stringData"]
    assert is_secret(data) or is_secret(data["cloud.conf"])
    assert is_secret(recording.outputs["kubeconfig"])


def test_load_balancers_wait_for_the_ccm_and_for_initialised_nodes(run_stack: Any) -> None:
    recording = run_stack()

    for name in ("web", "echo"):
        waits_for = recording.dependencies(recording.one(SERVICE, name).urn)
        assert recording.one(DAEMON_SET, "cloud-controller-manager").urn in waits_for
        assert recording.one(CONTROLLER, "cloud-controller").urn in waits_for


def test_the_controllers_wait_for_machines_and_ccm(run_stack: Any) -> None:
    recording = run_stack()

    waits_for = recording.dependencies(recording.one(CONTROLLER, "cloud-controller").urn)

    machines = {r.urn for r in recording.registrations if r.request.type == MACHINE}
    assert len(machines) == 4
    assert machines <= waits_for
    assert recording.one(DAEMON_SET, "cloud-controller-manager").urn in waits_for


def test_the_destroy_guard_is_deleted_before_everything_else(run_stack: Any) -> None:
    recording = run_stack()

    assert unguarded(recording) == set()
    assert recording.one(GUARD, "destroy-guard").inputs["services"] == ["default/web", "default/echo"]


def test_objects_in_the_cluster_go_with_it_but_load_balancers_are_deleted(run_stack: Any) -> None:
    recording = run_stack()

    cluster = recording.one(CLUSTER, "local").urn
    assert (
        recording.one("cloudcontroller:index:CloudControllerManager", "cloud-controller-manager").request.deletedWith
        == cluster
    )
    assert recording.one("cloudcontroller:index:Workload", "web").request.deletedWith == cluster
    for type_ in ("cloudcontroller:index:LoadBalancerService", SERVICE):
        assert not recording.one(type_, "web").request.deletedWith


def test_machines_are_spread_over_zones_and_keep_their_names_when_their_number_changes(run_stack: Any) -> None:
    pools = config()["nodePools"]
    more = [{**pool, "count": pool["count"] + (pool["name"] == "workers")} for pool in pools]

    def machines(recording: Any) -> dict[str, Any]:
        return {r.urn: r.inputs for r in recording.registrations if r.request.type == MACHINE}

    before, after = machines(run_stack(made=True)), machines(run_stack(made=True, nodePools=more))

    assert before.items() <= after.items()
    assert {inputs["name"]: inputs["subnet_id"] for inputs in after.values()} == {
        "local-control-plane-0": "local-zone-a-id",
        "local-workers-0": "local-zone-a-id",
        "local-workers-1": "local-zone-b-id",
        "local-workers-2": "local-zone-c-id",
        "local-workers-3": "local-zone-a-id",
    }


def test_ingress_machines_carry_the_tag_by_which_load_balancers_find_them(run_stack: Any) -> None:
    recording = run_stack(made=True)

    assert recording.one(MACHINE, "local-workers-0").inputs["tags"] == {
        "kubernetes.io/cluster": "local-id",
        "mycloud.io/ingress-node": "true",
        "pulumi.com/project": "cloud-controller",
        "pulumi.com/stack": "local",
    }
    tags = recording.one(MACHINE, "local-control-plane-0").inputs["tags"]
    assert tags["mycloud.io/ingress-node"] == "false"


def test_the_daemon_is_probed_on_its_port_and_may_authenticate_readers_of_its_metrics(run_stack: Any) -> None:
    recording = run_stack()
    (container,) = recording.one(DAEMON_SET, "cloud-controller-manager").inputs["spec"]["template"]["spec"][
        "containers"
    ]
    rules = recording.one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "cloud-controller-manager").inputs[
        "rules"
    ]

    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "secure", "scheme": "HTTPS"}
    assert "--bind-address=$(POD_IP)" in container["args"]
    reviews = {"tokenreviews", "subjectaccessreviews"}
    assert reviews <= {resource for rule in rules for resource in rule["resources"]}


def test_the_daemons_controllers_and_rights_follow_the_executors(run_stack: Any) -> None:
    def flag(recording: Any) -> str:
        args = recording.one(DAEMON_SET, "cloud-controller-manager").inputs["spec"]["template"]["spec"]["containers"][
            0
        ]["args"]
        return next(str(arg) for arg in args if arg.startswith("--controllers="))

    def may(recording: Any) -> set[tuple[str, str]]:
        rules = recording.one("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", "cloud-controller-manager").inputs[
            "rules"
        ]
        return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}

    mixed, all_by_daemon = run_stack(), run_stack(executors={})

    assert flag(mixed) == "--controllers=service,node-lifecycle,volume"
    assert flag(all_by_daemon) == "--controllers=node,route,service,node-lifecycle,volume"
    assert ("nodes/status", "patch") not in may(mixed)
    assert ("nodes/status", "patch") in may(all_by_daemon)


def test_the_daemon_gets_the_flags_for_what_annotations_may_do(run_stack: Any) -> None:
    recording = run_stack(
        sharedLoadBalancers="any", annotationsMayName=["subnet=subnet-1"], addressChanges="acknowledge"
    )

    pod = recording.one(DAEMON_SET, "cloud-controller-manager").inputs["spec"]["template"]["spec"]
    flags = {
        "--shared-load-balancers=any",
        "--annotations-may-name=subnet=subnet-1",
        "--address-changes=acknowledge",
    }
    assert flags <= {*pod["containers"][0]["args"]}


def test_readiness_gates_bring_a_policy_that_comes_after_the_daemon_and_goes_before_it(run_stack: Any) -> None:
    recording = run_stack(readinessGates="inject")

    policy = "kubernetes:admissionregistration.k8s.io/v1:MutatingAdmissionPolicy"
    daemon = recording.one(DAEMON_SET, "cloud-controller-manager")
    assert "--readiness-gates=true" in daemon.inputs["spec"]["template"]["spec"]["containers"][0]["args"]
    assert recording.one(policy, "cloud-controller-manager").inputs["spec"]["failurePolicy"] == "Ignore"
    assert recording.one(f"{policy}Binding", "cloud-controller-manager")
    assert not [each for each in run_stack().urns if "AdmissionPolicy" in each]


def test_the_api_server_judges_annotations_of_services_if_the_stack_asks_for_it(run_stack: Any) -> None:
    recording = run_stack(serviceAdmission="deny")

    policy = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
    assert recording.one(policy, "cloud-controller-services").inputs["spec"]["failurePolicy"] == "Ignore"
    bindings = [recording.one(f"{policy}Binding", f"cloud-controller-services-{mode}") for mode in ("deny", "warn")]
    assert [each.inputs["spec"]["validationActions"] for each in bindings] == [["Deny"], ["Warn"]]


def test_monitoring_brings_the_alert_rules_of_the_stacks_cloud(run_stack: Any) -> None:
    recording = run_stack(monitoring="annotations")

    rules = recording.one("kubernetes:core/v1:ConfigMap", "cloud-controller-manager-alerts").inputs["data"]
    assert "cloudprovider_mycloud_api_request" in "".join(rules.values())
    assert not [each for each in run_stack().urns if "Monitoring" in each]


@pytest.mark.parametrize(("mode", "annotated"), [("operator", False), ("annotations", True)])
def test_the_daemons_pods_are_scraped_in_one_way_only(mode: str, annotated: bool, run_stack: Any) -> None:
    recording = run_stack(monitoring=mode)

    template = recording.one(DAEMON_SET, "cloud-controller-manager").inputs["spec"]["template"]
    assert any(key.startswith("prometheus.io/") for key in template["metadata"]["annotations"]) is annotated


def test_an_acknowledgement_becomes_the_annotation_of_its_service_alone(run_stack: Any) -> None:
    recording = run_stack(replaceAddress=[{"default/web": "0123456789ab"}])

    web, echo = (recording.one(SERVICE, name).inputs["metadata"] for name in ("web", "echo"))
    assert web["annotations"]["cloud-controller/acknowledge-address-change"] == "0123456789ab"
    assert "annotations" not in echo
    assert recording.one(ADDRESS, "web").inputs["annotations"] == web["annotations"]


def test_the_services_address_is_planned_with_the_daemons_own_flags(run_stack: Any) -> None:
    recording = run_stack(addressChanges="acknowledge")

    assert recording.one(ADDRESS, "web").inputs["arguments"] == ["--address-changes=acknowledge"]
    assert recording.one(BALANCED, "web").inputs["served_classes"] == ["mycloud.io/load-balancer"]


def test_claims_find_a_class_and_a_driver_where_the_daemon_runs_volumes(run_stack: Any) -> None:
    recording = run_stack()

    made = recording.one("kubernetes:storage.k8s.io/v1:StorageClass", "mycloud").inputs
    assert made["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert made["provisioner"] == "mycloud.io/volume"
    assert made["volumeBindingMode"] == "WaitForFirstConsumer"
    assert made["allowVolumeExpansion"] is True
    driver = recording.one("kubernetes:storage.k8s.io/v1:CSIDriver", "mycloud.io").inputs
    assert driver["spec"] == {"attachRequired": True, "podInfoOnMount": False}


def test_the_ccm_comes_up_before_nodes_are_initialised(run_stack: Any) -> None:
    pod = run_stack().one(DAEMON_SET, "cloud-controller-manager").inputs["spec"]["template"]["spec"]

    uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
    assert {"key": uninitialized, "value": "true", "effect": "NoSchedule"} in pod["tolerations"]
    assert pod["hostNetwork"]
    assert pod["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}


def test_the_ccm_restarts_when_its_config_changes(run_stack: Any) -> None:
    def checksum(**more: Any) -> str:
        daemon_set = run_stack(made=True, **more).one(DAEMON_SET, "cloud-controller-manager").inputs
        return str(daemon_set["spec"]["template"]["metadata"]["annotations"]["checksum/cloud-config"])

    assert len(checksum()) == 64
    assert checksum() == checksum()
    assert checksum() != checksum(mycloudToken="another-token")


def test_the_ccm_gets_the_controllers_token_where_the_stack_has_one(run_stack: Any) -> None:
    secret = run_stack(made=True, mycloudControllerToken="limited").one(
        "kubernetes:core/v1:Secret", "cloud-controller-manager-config"
    )

    text = str(secret.inputs)
    assert "token = limited" in text
    assert TOKEN not in text


def test_the_ccms_secret_says_when_its_token_expires_where_the_stack_does(run_stack: Any) -> None:
    def annotations(**mycloud: str) -> Any:
        section = {"endpoint": "http://127.16.0.1:7070", **mycloud}
        recording = run_stack(made=True, mycloud=section)
        secret = recording.one("kubernetes:core/v1:Secret", "cloud-controller-manager-config").inputs
        return secret["metadata"].get("annotations", {})

    assert annotations(tokenExpires="2027-01-31") == {"cloud-controller/credential-expires": "2027-01-31"}
    assert annotations() == {}


def test_a_new_token_changes_the_ccms_secret_in_place(run_stack: Any) -> None:
    """By default the Kubernetes provider replaces a Secret whose data change: it is gone while the CCM restarts."""
    provider = run_stack().one("pulumi:providers:kubernetes", "local")

    assert provider.inputs["enableSecretMutable"] in (True, "true")


def test_production_protects_and_retains_the_cluster_and_its_load_balancers(run_stack: Any) -> None:
    registrations = run_stack(stack="mycloud-prod").registrations

    by_urn = {r.urn: r.request for r in registrations}

    def types(option: str) -> set[str]:
        """Of what has the option, or inherits it from its parent unless it says otherwise."""

        def has(request: Any) -> bool:
            return bool(getattr(request if request.HasField(option) else by_urn[request.parent], option))

        return {r.request.type for r in registrations if has(r.request)}

    del registrations[0]  # the stack, which has no parent
    clusters = {"cloudcontroller:index:Cluster", NETWORK, "pulumi-python:dynamic/mycloud:Subnet", CLUSTER}
    assert types("protect") == clusters | {BALANCED, SERVICE}
    # Where load balancers and cluster stay, the guard has nothing to keep from being lost.
    assert types("retainOnDelete") == types("protect") | {GUARD, ADDRESS}


def test_a_stack_without_protect_and_retain_sets_neither(run_stack: Any) -> None:
    for registration in run_stack().registrations:
        assert not registration.request.protect
        assert not registration.request.retainOnDelete


def test_three_ccms_are_disrupted_one_at_a_time(run_stack: Any) -> None:
    recording = run_stack(stack="mycloud-prod")
    daemon_set = recording.one(DAEMON_SET, "cloud-controller-manager").inputs["spec"]

    budget = recording.one(BUDGET, "cloud-controller-manager").inputs

    assert budget["metadata"]["namespace"] == "kube-system"
    assert budget["spec"]["minAvailable"] == 2
    assert budget["spec"]["selector"] == daemon_set["selector"]
    assert daemon_set["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1}
    assert "--leader-elect=true" in daemon_set["template"]["spec"]["containers"][0]["args"]


def test_a_single_ccm_has_no_disruption_budget(run_stack: Any) -> None:
    assert BUDGET not in {r.request.type for r in run_stack().registrations}


def test_only_the_source_ranges_of_the_stack_reach_its_load_balancers(run_stack: Any) -> None:
    recording = run_stack(sourceRanges=["10.1.0.0/16"])

    for name in ("web", "echo"):
        assert recording.one(SERVICE, name).inputs["spec"]["loadBalancerSourceRanges"] == ["10.1.0.0/16"]


def test_every_container_has_requests_and_limits(run_stack: Any) -> None:
    for registration in run_stack().registrations:
        if registration.request.type.startswith("kubernetes:apps/"):
            for container in registration.inputs["spec"]["template"]["spec"]["containers"]:
                for bound in ("requests", "limits"):
                    assert {"cpu", "memory"} <= container["resources"][bound].keys(), container["name"]


def test_a_wrong_config_ends_the_program_with_one_clear_line(run_stack: Any) -> None:
    with pytest.raises(pulumi.RunError, match="did you mean 'mycloud'"):
        run_stack(cloud="myclod")


def test_a_zone_that_the_cloud_lacks_is_left_to_the_clouds_own_check(run_stack: Any) -> None:
    pools = [{**pool, "zones": ["zone-z"]} for pool in config()["nodePools"]]

    recording = run_stack(nodePools=pools)

    assert recording.one("pulumi-python:dynamic/mycloud:Subnet", "local-zone-z").inputs["zone"] == "zone-z"
