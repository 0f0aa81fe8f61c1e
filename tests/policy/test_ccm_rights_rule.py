"""Rules `ccm-rbac-grant-needs` and `ccm-rbac-avoid-excess`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cloud_controller import rbac
from cloud_stacks.policies.host import AnalyzedProvider, AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, PropertyMap
from tests.policy_objects import EXEMPT, ccm, resource

NEEDS, EXCESS = "ccm-rbac-grant-needs", "ccm-rbac-avoid-excess"
GROUP = "kubernetes:rbac.authorization.k8s.io/v1"
ACCOUNT = {"kind": "ServiceAccount", "name": "ccm", "namespace": "kube-system"}
SUBJECT = "ServiceAccount kube-system/ccm"
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}


def workload(*args: Any, image: str = "registry.example/cloud-controller:0.1.0", name: str = "ccm") -> AnalyzedResource:
    """Ours, with controllers node and service, unless `args` say otherwise."""
    given = args or ("run", "--cloud=mycloud", "--controllers=node,service")
    return ccm(container={"image": image, "args": [*given]}, name=name, serviceAccountName="ccm")


def container(of: AnalyzedResource) -> Any:
    return of.properties["spec"]["template"]["spec"]["containers"][0]


def account(name: Any = "ccm") -> AnalyzedResource:
    return resource("kubernetes:core/v1:ServiceAccount", {"metadata": {"name": name, "namespace": "kube-system"}}, "sa")


def role(*rules: Any, name: Any = "ccm", kind: str = "ClusterRole", **more: Any) -> AnalyzedResource:
    metadata = {"name": name, "namespace": "kube-system", "labels": more.pop("labels", {})}
    return resource(f"{GROUP}:{kind}", {"metadata": metadata, "rules": [*rules], **more}, f"{kind}-{name}")


def binding(
    role_name: Any = "ccm", kind: str = "ClusterRole", of_kind: str = "ClusterRoleBinding", subject: Any = ACCOUNT
) -> AnalyzedResource:
    props = {
        "metadata": {"name": "b", "namespace": "kube-system"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name},
        "subjects": [{"kind": "User", "name": "somebody"}, subject],
    }
    return resource(f"{GROUP}:{of_kind}", props, f"{of_kind}-{role_name}")


def rules(*controllers: str, **options: Any) -> tuple[list[Any], list[Any]]:
    found = rbac.rules(controllers or ("node", "service"), **options)
    return [rule.to_json() for rule in found.cluster], [rule.to_json() for rule in found.namespaced]


def stack(
    *more: AnalyzedResource,
    without: tuple[str, str] | None = None,
    running: AnalyzedResource | None = None,
    bound: AnalyzedResource | None = None,
    made: tuple[list[Any], list[Any]] | None = None,
) -> list[AnalyzedResource]:
    """A CCM with exactly the rights that it needs, but for the verb `without` of a resource."""
    cluster, namespaced = made or rules()
    if without is not None:
        verb, name = without
        cluster = [
            {**rule, "verbs": [each for each in rule["verbs"] if rule["resources"] != [name] or each != verb]}
            for rule in cluster
        ]
    return [
        running or workload(),
        account(),
        role(*cluster),
        bound or binding(),
        role(*namespaced, kind="Role"),
        binding(kind="Role", of_kind="RoleBinding"),
        *more,
    ]


def messages(pack: PolicyHost, rule: str, resources: list[AnalyzedResource]) -> list[str]:
    """What the rule says of the ServiceAccount; `not-evaluated` stands for itself."""
    found = [finding for finding in pack.analyze_stack(resources) if finding.policy == rule]
    return [
        finding.level if finding.level == "not-evaluated" else finding.message.removeprefix(f"{SUBJECT} ")
        for finding in found
    ]


def silent(pack: PolicyHost, resources: list[AnalyzedResource]) -> bool:
    return not messages(pack, NEEDS, resources) and not messages(pack, EXCESS, resources)


def test_a_missing_verb_is_named_with_the_controller_that_needs_it(pack: PolicyHost) -> None:
    [found] = [f for f in pack.analyze_stack(stack(without=("patch", "services/status"))) if f.policy == NEEDS]

    assert (found.level, found.severity) == ("mandatory", "high")
    assert found.urn.endswith("DaemonSet::ccm")
    assert found.message == (f"{SUBJECT} lacks patch of services/status, which controller service needs")


def test_a_missing_verb_that_every_controller_needs_is_said_so(pack: PolicyHost) -> None:
    assert messages(pack, NEEDS, stack(without=("watch", "nodes"))) == [
        "lacks watch of nodes, which every controller needs"
    ]


def test_rights_of_a_disabled_controller_are_excess(pack: PolicyHost) -> None:
    more = stack(made=rules("node", "node-lifecycle", "service"))

    [found] = [f for f in pack.analyze_stack(more) if f.policy == EXCESS]

    assert (found.level, found.severity) == ("advisory", "high")
    assert found.message == (
        f"{SUBJECT} may delete nodes, which no enabled controller needs (controllers: node, service)"
    )
    assert messages(pack, NEEDS, more) == []


def test_all_excess_is_reported_by_resource_in_one_violation(pack: PolicyHost) -> None:
    cluster, namespaced = rules()
    pods = {"apiGroups": ["", "metrics.k8s.io"], "resources": ["pods"], "verbs": ["create", "get"]}

    assert messages(pack, EXCESS, stack(made=([*cluster, SECRETS, pods], namespaced))) == [
        (
            "may get, create pods and get, create pods.metrics.k8s.io and get, list, watch secrets, which no enabled "
            "controller needs (controllers: node, service)"
        )
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}, "do everything with nodes"),
        (
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]},
            "get everything of every API group",
        ),
        ({"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}, "get /debug/*"),
    ],
)
def test_wildcards_and_paths_are_excess(pack: PolicyHost, rule: PropertyMap, said: str) -> None:
    cluster, namespaced = rules()

    [message] = messages(pack, EXCESS, stack(made=([*cluster, rule], namespaced)))

    assert f"may {said}, which no enabled controller needs" in message


def test_a_right_for_every_object_is_excess_where_one_object_is_needed(pack: PolicyHost) -> None:
    cluster, namespaced = rules()
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}

    assert messages(pack, EXCESS, stack(made=([*cluster, leases], namespaced))) == [
        ("may get, update leases.coordination.k8s.io, of which it needs only cloud-controller-manager in kube-system")
    ]


def test_create_with_a_name_grants_nothing_since_a_create_names_no_object(pack: PolicyHost) -> None:
    cluster, _ = rules()
    lease = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "get", "update"],
        "resourceNames": ["cloud-controller-manager"],
    }

    assert messages(pack, NEEDS, stack(made=(cluster, [lease]))) == [
        ("lacks create of leases.coordination.k8s.io in kube-system, which every controller needs")
    ]


def test_a_ccm_whose_account_is_bound_to_nothing_is_reported(pack: PolicyHost) -> None:
    assert messages(pack, NEEDS, [workload(), account(), role(*rules()[0])]) == [
        "is bound to no role, and lacks all that its controllers need (node, service)"
    ]


def test_an_account_that_the_stack_does_not_make_may_be_bound_elsewhere(pack: PolicyHost) -> None:
    assert messages(pack, NEEDS, [workload(), role(*rules()[0])]) == []


def test_excess_of_an_account_that_the_stack_does_not_make_is_reported(pack: PolicyHost) -> None:
    assert messages(pack, EXCESS, [workload(), role(SECRETS), binding()]) == [
        ("may get, list, watch secrets, which no enabled controller needs (controllers: node, service)")
    ]


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "User", "name": "system:serviceaccount:kube-system:ccm"},
        {"kind": "Group", "name": "system:serviceaccounts:kube-system"},
        {"kind": "Group", "name": "system:serviceaccounts"},
        {"kind": "Group", "name": "system:authenticated"},
    ],
)
def test_bindings_count_by_user_name_and_group_too(pack: PolicyHost, subject: PropertyMap) -> None:
    assert messages(pack, NEEDS, stack(bound=binding(subject=subject))) == []


@pytest.mark.parametrize(
    "subject", [{**ACCOUNT, "name": "other"}, {**ACCOUNT, "namespace": "default"}, {"kind": "Group", "name": "ccm"}]
)
def test_bindings_of_others_do_not_count(pack: PolicyHost, subject: PropertyMap) -> None:
    [message] = messages(pack, NEEDS, stack(bound=binding(subject=subject)))

    assert "lacks" in message


def test_a_role_binding_gives_a_cluster_roles_rights_in_its_namespace_only(pack: PolicyHost) -> None:
    inside = stack(bound=binding(of_kind="RoleBinding"))

    [message] = messages(pack, NEEDS, inside)

    assert "list, watch of nodes" in message


def test_an_aggregated_role_has_the_rights_of_the_roles_that_it_selects(pack: PolicyHost) -> None:
    cluster, namespaced = rules()
    expression = {"key": "example.com/for", "operator": "In", "values": ["ccm"]}
    selectors = {"clusterRoleSelectors": [{"matchExpressions": [expression]}]}
    parts = [
        role(*cluster, name="part", labels={"example.com/for": "ccm"}),
        role(SECRETS, name="other", labels={"example.com/for": "others"}),
    ]

    # The control plane replaces an aggregated role's own rules.
    aggregated = stack(made=([SECRETS], namespaced))
    aggregated[2] = role(SECRETS, aggregationRule=selectors)

    assert silent(pack, [*aggregated, *parts])


def test_an_aggregated_role_that_selects_cluster_admin_may_do_everything(pack: PolicyHost) -> None:
    everything = stack()
    everything[2] = role(aggregationRule={"clusterRoleSelectors": [{"matchExpressions": []}]})

    [message] = messages(pack, EXCESS, everything)

    assert "may do everything with everything of every API group" in message


def test_a_binding_to_cluster_admin_lacks_nothing_and_is_excess(pack: PolicyHost) -> None:
    admin = stack(bound=binding("cluster-admin"))

    assert messages(pack, NEEDS, admin) == []
    assert "may do everything with everything" in messages(pack, EXCESS, admin)[0]


def test_rights_in_a_list_of_objects_and_in_patches_count(pack: PolicyHost) -> None:
    [running, made, cluster, bound, *others] = stack()
    listed = resource(f"{GROUP}:ClusterRoleBindingList", {"items": [bound.properties]}, "list")
    patched = resource(f"{GROUP}:ClusterRolePatch", cluster.properties, "patch")

    assert silent(pack, [running, made, patched, listed, *others])


def options(*args: str) -> AnalyzedResource:
    return workload("run", "--cloud=mycloud", "--controllers=node,service", *args)


@pytest.mark.parametrize(
    ("args", "made"),
    [
        (["--bind-address=$(POD_IP)"], rules(protected=True)),
        (["--bind-address", "10.0.0.1"], rules(protected=True)),
        (["--bind-address=10.0.0.1", "--secure-port=0"], rules()),
        (["--bind-address=::1"], rules()),
        (["--readiness-gates"], rules(readiness_gates=True)),
        (["--leader-elect-resource-name=ours"], rules(lease="ours")),
        (["--controllers=*,-volume,-route,-node-lifecycle"], rules()),
        (["--controllers=cloud-node,service,route,-route"], rules()),
        (["--controllers=*,-volume,-node-lifecycle,-node", "--configure-cloud-routes=false"], rules("service")),
        (
            ["--controllers=node,service,node-lifecycle,route,volume"],
            rules("node", "service", "node-lifecycle", "route", "volume"),
        ),
    ],
)
def test_the_rights_that_are_needed_follow_from_the_flags(pack: PolicyHost, args: list[str], made: Any) -> None:
    assert silent(pack, stack(running=options(*args), made=made))


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (["--controllers=$(NAMES)"], "node,service"),
        (["--controllers", "$(NAMES)"], "node,service"),
        (["$(NAMES)"], "--controllers=node,service --v=2"),
        (["--controllers=node,service", "--cluster-name", "$(NAMES)"], UNKNOWN),
    ],
)
def test_the_values_of_variables_count(pack: PolicyHost, args: list[str], value: Any) -> None:
    running = workload("run", "--cloud=mycloud", *args)
    container(running)["env"] = [{"name": "NAMES", "value": value}]

    assert silent(pack, stack(running=running))


def test_controllers_that_an_unknown_variable_may_name_are_not_evaluated(pack: PolicyHost) -> None:
    running = workload("run", "--cloud=mycloud", "$(FLAGS)")
    container(running)["env"] = [{"name": "FLAGS", "value": UNKNOWN}]

    assert messages(pack, NEEDS, stack(running=running)) == ["not-evaluated"]


@pytest.mark.parametrize("end", [";", "; sleep 9", "&&x"])
def test_flags_in_a_script_end_where_its_commands_end(pack: PolicyHost, end: str) -> None:
    running = workload(f"exec cloud-controller run --cloud=mycloud --controllers=node,service{end}")
    container(running)["command"] = ["sh", "-c"]

    assert silent(pack, stack(running=running))


def test_without_the_flag_controllers_every_controller_of_the_cloud_runs(pack: PolicyHost) -> None:
    every = rules("node", "service", "node-lifecycle", "route", "volume")

    assert silent(pack, stack(running=workload("run", "--cloud=mycloud"), made=every))


def test_a_cloud_that_keeps_a_checkpoint_needs_its_config_map(pack: PolicyHost) -> None:
    running = workload("run", "--cloud=aws", "--controllers=node,service")

    assert silent(pack, stack(running=running, made=rules(keeps_checkpoint=True)))
    assert "create of configmaps in kube-system" in messages(pack, NEEDS, stack(running=running))[0]


@pytest.mark.parametrize("args", [["--leader-elect=false"], ["--dry-run"]])
def test_without_an_election_the_lease_is_not_needed(pack: PolicyHost, args: list[str]) -> None:
    cluster, _ = rules()

    assert messages(pack, NEEDS, stack(running=options(*args), made=(cluster, []))) == []


def test_a_dry_run_needs_to_read_only(pack: PolicyHost) -> None:
    dry = stack(running=options("--dry-run"), without=("patch", "services/status"))

    assert messages(pack, NEEDS, dry) == []
    assert (
        "list of services"
        in messages(pack, NEEDS, stack(running=options("--dry-run"), without=("list", "services")))[0]
    )


def test_a_ccm_with_a_kubeconfig_acts_as_somebody_else_and_lacks_nothing(pack: PolicyHost) -> None:
    assert messages(pack, NEEDS, [options("--kubeconfig=/etc/kubeconfig"), account()]) == []


UPSTREAM = "registry.k8s.io/provider-aws/cloud-controller-manager:v1.36.1"


def vendors(*args: str, image: str = UPSTREAM) -> AnalyzedResource:
    return workload("--cloud-provider=aws", *args, image=image)


def upstream(*nodes: str) -> tuple[list[Any], list[Any]]:
    """Rights as the vendors' manifests give them, for controllers node and service."""
    cluster = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "update", "patch", *nodes]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch", "patch", "update"]},
        {"apiGroups": [""], "resources": ["services/status"], "verbs": ["patch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": [""], "resources": ["endpoints"], "verbs": ["create", "get", "list", "watch", "update"]},
    ]
    return cluster, [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}
    ]


TWO = "--controllers=cloud-node-controller,service-lb-controller"


def test_a_vendors_ccm_may_have_harmless_rights_beyond_upstreams(pack: PolicyHost) -> None:
    assert silent(pack, stack(running=vendors(TWO), made=upstream()))


def test_a_vendors_ccm_that_lacks_what_upstreams_controllers_need_is_reported(pack: PolicyHost) -> None:
    lacking = stack(running=vendors("--controllers=*"), made=upstream())

    assert messages(pack, NEEDS, lacking) == ["lacks delete of nodes, which controller node-lifecycle needs"]


def test_a_vendors_ccm_may_not_change_what_only_a_disabled_controller_changes(pack: PolicyHost) -> None:
    assert messages(pack, EXCESS, stack(running=vendors(TWO), made=upstream("delete"))) == [
        "may delete nodes, which no enabled controller needs (controllers: node, service)"
    ]


@pytest.mark.parametrize(
    "running",
    [
        vendors(TWO),
        workload("--cloud-provider=alicloud", "--controllers=node", image="x/cloud-controller-manager:v2"),
    ],
)
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (SECRETS, "get, list, watch secrets"),
        ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}, "do everything with nodes"),
        (
            {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]},
            "create serviceaccounts/token",
        ),
        ({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}, "create pods/exec"),
        ({"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["patch"]}, "patch daemonsets.apps"),
        ({"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}, "impersonate users"),
    ],
)
def test_a_vendors_ccm_may_have_nothing_that_leads_to_more_rights(
    pack: PolicyHost, running: AnalyzedResource, rule: PropertyMap, said: str
) -> None:
    cluster, namespaced = upstream()

    [message] = messages(pack, EXCESS, stack(running=running, made=([*cluster, rule], namespaced)))

    assert f"may {said}, which no " in message


def test_tokens_are_no_excess_where_each_controller_has_an_account_of_its_own(pack: PolicyHost) -> None:
    cluster, namespaced = upstream()
    tokens = {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}
    running = vendors("--use-service-account-credentials=true", TWO)

    assert silent(pack, stack(running=running, made=([*cluster, tokens], namespaced)))


def test_vendors_own_controllers_are_judged_without_upstreams_needs(pack: PolicyHost) -> None:
    assert messages(pack, NEEDS, stack(running=vendors("--controllers=node,ingress"), made=([], []))) == []


@pytest.mark.parametrize("provider", ["alicloud", "alibabacloud"])
def test_a_ccm_with_controllers_of_its_own_under_upstreams_names_is_judged_without_upstreams_needs(
    pack: PolicyHost, provider: str
) -> None:
    running = workload(f"--cloud-provider={provider}", "--controllers=service", image="x/cloud-controller-manager:v2")

    assert messages(pack, NEEDS, stack(running=running, made=([], []))) == []


def test_a_stack_without_a_ccm_is_left_alone(pack: PolicyHost) -> None:
    other = ccm(container={"image": "registry.example/web:1"})

    assert silent(pack, [other, account(), role(SECRETS), binding()])


def test_an_exempt_ccm_is_left_alone(pack: PolicyHost) -> None:
    assert silent(pack, stack(running=workload(name=EXEMPT), without=("watch", "nodes"), made=rules("node", "volume")))


@pytest.mark.parametrize(
    "unknown",
    [
        stack(running=workload("run", "--cloud=mycloud", UNKNOWN)),
        stack(running=options("--config=/etc/daemon.yaml")),
        stack(running=options("--controllers=nodes")),
        stack(bound=binding(UNKNOWN)),
        stack(bound=binding("made-elsewhere")),
        stack(bound=binding(subject={**ACCOUNT, "name": UNKNOWN})),
        stack(made=([UNKNOWN], [])),
    ],
)
def test_needs_that_depend_on_an_unknown_value_are_not_evaluated(
    pack: PolicyHost, unknown: list[AnalyzedResource]
) -> None:
    assert messages(pack, NEEDS, unknown) == ["not-evaluated"]


def test_excess_that_a_role_made_elsewhere_may_give_is_not_evaluated(pack: PolicyHost) -> None:
    found = pack.analyze_stack(stack(binding("made-elsewhere", of_kind="ClusterRoleBinding")))

    [only] = [finding for finding in found if finding.policy == EXCESS]
    assert only.level == "not-evaluated"
    assert only.message.endswith("ClusterRole made-elsewhere is not in the stack: what it grants is not known")


def test_certain_excess_is_reported_beside_unknown_rules(pack: PolicyHost) -> None:
    cluster, namespaced = rules()

    [message] = messages(pack, EXCESS, stack(made=([UNKNOWN, *cluster, SECRETS], namespaced)))

    assert "secrets" in message


def test_an_unknown_word_beside_the_list_of_controllers_does_not_matter(pack: PolicyHost) -> None:
    assert silent(pack, stack(running=workload("run", "--cloud=mycloud", "--controllers=node,service", UNKNOWN)))


def test_the_roles_of_another_cluster_do_not_count(pack: PolicyHost) -> None:
    [running, made, *others] = stack()
    there = AnalyzedProvider("pulumi:providers:kubernetes", "urn:pulumi:dev::sample::p::there", "there")
    elsewhere = [replace(each, provider=there) for each in (running, made)]

    [message] = messages(pack, NEEDS, [*elsewhere, *others])

    assert "is bound to no role" in message


def test_no_value_of_the_workload_is_shown(pack: PolicyHost) -> None:
    shown = messages(pack, EXCESS, stack(running=options("--password=hunter2"), made=rules("node", "volume")))

    assert shown
    assert "hunter2" not in shown[0]
