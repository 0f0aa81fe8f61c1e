"""The dynamic resource CloudController: what its provider tells the engine in each situation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pulumi
import pytest
from pulumi.dynamic import CheckResult
from pulumi.dynamic.config import Config
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.output import UNKNOWN

from cloud_controller.cloud import AccessDenied, ForeignCluster, NotFound
from cloud_controller.kube import NAMESPACES, UnreachableError
from cloud_controller.plan import Action, ActionKind
from components import cluster_plan
from components.cloud_controller import CloudController, CloudControllerProvider
from components.cluster_plan import Machine, Step, Target, World
from components.inputs import WrongInput
from components.placeholder import PLACEHOLDER
from local.plugins.dynamic import DynamicChecks, DynamicServer
from tests.fake_kubernetes import FakeKubernetes

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-that-nobody-may-see"
MISSING = Step(Action(ActionKind.CREATE, "route/10.20.1.0/24", "route pods of a to its machine"), "route", "pulumi")


def inputs(*names: str, **more: Any) -> dict[str, Any]:
    return {
        "cloud": "mycloud",
        "cluster_id": "c-1",
        "network_id": "net-1",
        "cluster_cidr": "10.20.0.0/16",
        "machines": [{"name": name, "provider_id": f"mycloud://local/zone-a/i-{name}"} for name in names or ("a",)],
        "executors": {"node": "pulumi", "route": "pulumi"},
        "deadline": 60.0,
        **more,
    }


def provider(token: str = TOKEN, **more: str) -> CloudControllerProvider:
    """A configured provider, as the plugin has it."""
    config = {"p:mycloud": '{"endpoint": "http://127.16.0.1:7070"}', "p:mycloudToken": token}
    config |= {f"p:{key}": value for key, value in more.items()}
    made = CloudControllerProvider()
    request: Any = SimpleNamespace(config=Config(config, "p"))
    made.configure(request)
    return made


class Cluster:
    """What `cluster_plan` would find and do; the provider under test opens it instead of a real one."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.gone: list[str] = []
        self.error: Exception | None = None
        self.configs: list[str] = []
        self.kubeconfigs: list[str | None] = []
        self.targets: list[Target] = []
        self.uid: str | Exception = "uid-here"
        self.torn_down = False

    def open(self, _cloud: str, config: str, kubeconfig: str | None = None) -> Any:
        self.configs.append(config)
        self.kubeconfigs.append(kubeconfig)
        if self.error:
            raise self.error
        api = FakeKubernetes()
        if isinstance(self.uid, Exception):
            api.fail(self.uid)
        else:
            api.put(NAMESPACES, {"metadata": {"name": "kube-system", "uid": self.uid}})
        return SimpleNamespace(kube=api, cloud=None)

    def observe_and_plan(self, _world: World, target: Target) -> list[Step]:
        self.targets.append(target)
        return self.steps

    def find_gone(self, _world: World, machines: list[Machine]) -> list[Machine]:
        return [machine for machine in machines if machine.name in self.gone]

    def converge(self, _world: World, target: Target, _deadline: float, _tell: object) -> list[str]:
        self.targets.append(target)
        done, self.steps = [str(step.action) for step in self.steps], []
        return done

    def tear_down(self, *_: object) -> None:
        self.torn_down = True


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(World, "open", made.open)
    monkeypatch.setattr(cluster_plan, "observe_and_plan", made.observe_and_plan)
    monkeypatch.setattr(cluster_plan, "gone", made.find_gone)
    monkeypatch.setattr(cluster_plan, "converge", made.converge)
    monkeypatch.setattr(cluster_plan, "await_volumes", lambda *_: None)
    monkeypatch.setattr(cluster_plan, "tear_down", made.tear_down)
    monkeypatch.setattr("cloud_controller.clouds.load", lambda *_: None)
    return made


def test_the_identity_of_the_kubernetes_cluster_is_an_output(cluster: Cluster) -> None:
    cluster.uid = "uid-of-this-one"

    outputs: Any = provider().create(inputs()).outs

    assert outputs["cluster_uid"] == "uid-of-this-one"


def test_a_destroy_that_reaches_another_kubernetes_cluster_deletes_nothing(cluster: Cluster) -> None:
    cluster.uid = "uid-there"

    with pytest.raises(ForeignCluster, match=r"uid-here.*uid-there"):
        provider().delete("c-1", {**inputs(), "cluster_uid": "uid-here"})

    assert not cluster.torn_down


@pytest.mark.parametrize("step", ["diff", "update"])
def test_a_kubeconfig_of_another_cluster_fails_the_preview_and_the_update_of_an_existing_one(
    cluster: Cluster, step: str
) -> None:
    cluster.uid = "uid-there"
    made = provider(kubeconfig=TOKEN)
    olds = {**inputs(existing=True), "cluster_uid": "uid-here"}

    with pytest.raises(ForeignCluster, match=r"uid-here.*uid-there"):
        getattr(made, step)("c-1", olds, inputs(existing=True, plan=[]))

    assert cluster.targets == []  # nothing was applied


def test_an_existing_cluster_is_compared_only_where_the_same_one_is_meant_and_there_are_secrets(
    cluster: Cluster,
) -> None:
    cluster.uid = "uid-there"
    olds = {**inputs(existing=True), "cluster_uid": "uid-here"}

    other = provider(kubeconfig=TOKEN).diff("c-1", olds, inputs(existing=True, cluster_id="c-2", plan=[]))
    unseen = provider(kubeconfig=PLACEHOLDER).diff("c-1", olds, inputs(existing=True, plan=[]))
    cluster.uid = "uid-here"
    same = provider(kubeconfig=TOKEN).diff("c-1", olds, inputs(existing=True, plan=[]))
    provider().diff("c-1", {**inputs(), "cluster_uid": "uid-here"}, inputs(plan=[]))

    assert (other.replaces, unseen.changes, same.changes) == (["cluster_id"], False, False)
    assert cluster.kubeconfigs == [TOKEN]  # a cluster of the program is not contacted for it


@pytest.mark.parametrize("uid", ["uid-here", UnreachableError("no answer")], ids=["same", "no answer"])
def test_a_destroy_continues_if_the_cluster_is_the_same_or_does_not_answer(
    cluster: Cluster, uid: str | Exception
) -> None:
    cluster.uid = uid

    provider().delete("c-1", {**inputs(), "cluster_uid": "uid-here"})

    assert cluster.torn_down


def failures(result: CheckResult) -> list[tuple[str, str]]:
    return [(failure.property, failure.reason) for failure in result.failures]


def test_the_plan_is_an_input_that_previews_and_policies_see(cluster: Cluster) -> None:
    cluster.steps = [MISSING]

    result = provider().check({}, inputs())

    assert failures(result) == []
    assert result.inputs["plan"] == [MISSING.to_json()]


def test_a_cluster_that_does_not_exist_yet_is_planned_without_calling_its_cloud(cluster: Cluster) -> None:
    unknown = {"cluster_id": UNKNOWN, "network_id": UNKNOWN, "cluster_cidr": UNKNOWN}
    machines = [{"name": "a", "provider_id": UNKNOWN}]

    plan = provider().check({}, inputs(**unknown, machines=machines)).inputs["plan"]

    assert [entry["target"] for entry in plan] == ["node/a", "route/pods-of-a"]
    assert all(entry["assumed"] for entry in plan)
    assert cluster.configs == []


@pytest.mark.parametrize(
    "unknown",
    [
        {"machines": UNKNOWN},
        {"machines": [{"name": UNKNOWN}]},
        {"machines": [UNKNOWN]},
        {"executors": {"node": UNKNOWN}},
    ],
)
def test_unknown_inputs_make_no_plan(cluster: Cluster, unknown: dict[str, Any]) -> None:
    result = provider().check({}, inputs(**unknown))

    assert failures(result) == []
    assert [entry["summary"] for entry in result.inputs["plan"]] == ["not evaluated"]
    assert cluster.configs == []


def test_a_run_with_placeholder_secrets_does_not_evaluate_the_plan(cluster: Cluster) -> None:
    [entry] = provider(PLACEHOLDER).check({}, inputs()).inputs["plan"]

    assert (entry["kind"], entry["summary"]) == ("ignore", "not evaluated")
    assert "placeholder" in entry["reason"]
    assert cluster.configs == []


@pytest.mark.parametrize("error", [AccessDenied("the token is not accepted"), UnreachableError("connection refused")])
def test_real_credentials_without_an_answer_fail_the_check_in_one_line(cluster: Cluster, error: Exception) -> None:
    cluster.error = error

    [(_, reason)] = failures(provider().check({}, inputs()))

    assert reason == f"could not make the plan: {error}"
    assert TOKEN not in reason


def test_a_cluster_that_was_deleted_by_hand_fails_the_check_with_advice(cluster: Cluster) -> None:
    cluster.error = NotFound("cluster c-1 does not exist")

    [(_, reason)] = failures(provider().check({}, inputs()))

    assert "cluster c-1 does not exist" in reason and "run `refresh`" in reason


def test_a_declared_machine_that_is_gone_fails_the_check_with_the_command_to_run(cluster: Cluster) -> None:
    cluster.gone = ["b"]

    [(name, reason)] = failures(provider().check({}, inputs("a", "b")))

    assert name == "", "Pulumi's CLI would print the value of the property: every machine, before the message"
    assert "machine b (mycloud://local/zone-a/i-b) no longer exists" in reason
    assert "run `refresh`, then `up`" in reason


@pytest.mark.parametrize("kept", ["a", "A"])
def test_machines_that_the_program_dropped_are_planned_for_removal(cluster: Cluster, kept: str) -> None:
    provider().check(inputs("a", "b"), inputs(kept))

    assert cluster.targets[0].removed == {"b"}
    assert cluster.targets[0].names() == {"a"}


@pytest.mark.parametrize(
    ("wrong", "name", "hint"),
    [
        ({"cluster_cidr": "10.20.0.1/16"}, "cluster_cidr", "without host bits"),
        ({"cluster_cidr": "10.20.0.0"}, "cluster_cidr", "10.4.0.0/16"),
        ({"cloud": "nimbus"}, "cloud", "mycloud"),
        ({"executors": {"service": "pulumi"}}, "executors.service", "daemon"),
        ({"executors": {"nodes": "pulumi"}}, "executors.nodes", "node, route"),
        ({"executors": {"node": "me"}}, "executors.node", "daemon, pulumi"),
        ({"machines": [{"name": "a"}, {"name": "a"}]}, "machines[1].name", "unique"),
        ({"machines": [{"name": "iZ1Z"}, {"name": "iz1z"}]}, "machines[1].name", "unique"),
        ({"deadline": -1.0}, "deadline", "more than 0"),
        ({"deadline": 0.0}, "deadline", "more than 0"),
        ({"deadline": "5m"}, "deadline", "more than 0"),
        ({"pools": [{"name": "a", "count": "many"}]}, "pools[0].count", "at least 0"),
        ({"pools": [{"name": "a", "count": -1.0}]}, "pools[0].count", "at least 0"),
        ({"network_id": None}, "network_id", "missing"),
    ],
)
def test_a_wrong_input_is_refused_by_name_before_any_call(
    cluster: Cluster, wrong: dict[str, Any], name: str, hint: str
) -> None:
    [(refused, reason)] = failures(provider().check({}, inputs(**wrong)))

    assert refused == name
    assert hint in reason
    assert cluster.configs == []


class Stack:
    """The resource in a stack: which steps Pulumi's CLI takes, and with what (seen with `PULUMI_DEBUG_GRPC`)."""

    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def preview(self, news: dict[str, Any]) -> bool:
        """Whether there is something to do."""
        return self._planned(news)[1]

    def up(self, news: dict[str, Any]) -> bool:
        """Whether something was done."""
        inputs, changed = self._planned(news)
        if not self.outputs:
            self.outputs = dict(provider().create(inputs).outs or {})
        elif changed:
            self.outputs = dict(provider().update("c-1", self.outputs, inputs).outs or {})
        self.inputs = inputs
        return changed

    def refresh(self) -> bool:
        """Whether the resource is reported as changed: the inputs of the last `up` against what is there."""
        self.outputs = dict(provider().read("c-1", self.outputs).outs or {})
        return provider().diff("c-1", self.outputs, self.inputs).changes is True

    def forget_number(self) -> None:
        """As if an earlier version had written the state."""
        for properties in (self.inputs, self.outputs):
            del properties["plan_number"]

    def _planned(self, news: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        inputs = provider().check(self.inputs, news).inputs
        return inputs, not self.outputs or provider().diff("c-1", self.outputs, inputs).changes is True


def made(cluster: Cluster) -> Stack:
    """A stack whose first `up` had something to do."""
    stack = Stack()
    cluster.steps = [MISSING]
    stack.up(inputs())
    return stack


def test_only_a_pending_plan_is_a_change(cluster: Cluster) -> None:
    stack = made(cluster)

    assert not stack.preview(inputs())

    cluster.steps = [MISSING]
    assert stack.preview(inputs())


def test_a_refresh_does_not_report_the_plan_that_was_applied(cluster: Cluster) -> None:
    stack = made(cluster)

    assert [stack.refresh(), stack.refresh()] == [False, False]
    assert [stack.up(inputs()), stack.refresh(), stack.up(inputs())] == [False, False, False]
    assert [stack.up(inputs("a", "b")), stack.refresh(), stack.up(inputs("a", "b"))] == [True, False, False]


def test_an_action_that_is_needed_again_is_a_change_again(cluster: Cluster) -> None:
    stack = made(cluster)

    for _ in range(2):
        cluster.steps = [MISSING]
        assert [stack.preview(inputs()), stack.up(inputs()), stack.up(inputs())] == [True, True, False]


def test_a_plan_stays_a_change_after_an_update_that_failed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = made(cluster)
    cluster.steps = [MISSING]
    with monkeypatch.context() as broken:
        broken.setattr(cluster_plan, "converge", Mock(side_effect=UnreachableError("no answer")))
        with pytest.raises(UnreachableError):
            stack.up(inputs())

    assert [stack.refresh(), stack.up(inputs()), stack.refresh()] == [True, True, False]


def test_a_refresh_reports_drift_until_it_is_gone(cluster: Cluster) -> None:
    stack = made(cluster)
    cluster.steps = [MISSING]

    assert [stack.refresh(), stack.refresh(), stack.preview(inputs())] == [True, True, True]

    cluster.steps = []
    assert [stack.refresh(), stack.up(inputs())] == [False, False]


def test_a_state_without_the_number_of_its_plan_reports_nothing_but_new_plans(cluster: Cluster) -> None:
    stack = made(cluster)
    stack.forget_number()

    assert [stack.refresh(), stack.preview(inputs())] == [False, False]

    cluster.steps = [MISSING]
    assert [stack.up(inputs()), stack.refresh()] == [True, False]


def test_actions_of_the_daemon_do_not_count_as_a_change() -> None:
    theirs = Step(Action(ActionKind.DELETE, "node/b", "delete the node"), "node-lifecycle", "daemon")

    assert provider().diff("c-1", inputs(), {**inputs(), "plan": [theirs.to_json()]}).changes is False


def test_another_cluster_replaces_the_resource_and_another_machine_updates_it() -> None:
    assert provider().diff("c-1", inputs(), inputs(cluster_id="c-2")).replaces == ["cluster_id"]
    assert provider().diff("c-1", inputs(), inputs(cluster_id=UNKNOWN)).replaces == ["cluster_id"]

    grown = provider().diff("c-1", inputs(), inputs("a", "b"))
    assert (grown.changes, grown.replaces) == (True, [])


def test_an_update_observes_again_and_returns_every_output(cluster: Cluster) -> None:
    cluster.steps = [MISSING]

    outputs = provider().update("c-1", inputs("a", "b"), inputs("a")).outs

    assert outputs is not None
    assert outputs["applied"] == [str(MISSING.action)]
    assert (outputs["nodes"], outputs["drift"], outputs["cluster_id"]) == (["a"], [], "c-1")
    assert cluster.targets[0].removed == {"b"}


def test_a_refresh_reports_drift_and_a_cluster_that_is_gone(cluster: Cluster) -> None:
    cluster.steps = [MISSING]
    drifted = provider().read("c-1", inputs())

    cluster.error = NotFound("no such cluster")
    gone = provider().read("c-1", inputs())

    assert (drifted.outs or {})["drift"] == [MISSING.to_json()]
    assert (gone.id, gone.outs) == (None, {})


@pytest.mark.usefixtures("cluster")
def test_what_a_refresh_does_not_find_in_a_cluster_that_is_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_plan, "observe_and_plan", Mock(side_effect=NotFound("no such table")))

    with pytest.raises(NotFound, match="no such table"):
        provider().read("c-1", inputs())


def test_credentials_come_from_the_config_and_are_in_no_result(cluster: Cluster) -> None:
    made = provider()

    results = [made.check({}, inputs()).inputs, made.create(inputs()).outs, made.read("c-1", inputs()).outs]

    assert all(f"token = {TOKEN}" in config for config in cluster.configs)
    assert TOKEN not in str(results)


def test_an_existing_cluster_is_reached_by_the_kubeconfig_of_the_stacks_config(cluster: Cluster) -> None:
    made = provider(kubeconfig=TOKEN)

    results = [made.check({}, inputs(existing=True)).inputs, made.create(inputs(existing=True)).outs]
    made.check({}, inputs())

    assert cluster.kubeconfigs == [TOKEN, TOKEN, None]
    assert TOKEN not in str(results)


def test_an_existing_cluster_without_a_kubeconfig_or_with_a_placeholder_is_not_contacted(cluster: Cluster) -> None:
    [(_, reason)] = failures(provider().check({}, inputs(existing=True)))
    [entry] = provider(kubeconfig=PLACEHOLDER).check({}, inputs(existing=True)).inputs["plan"]

    assert "kubeconfig: the stack's config has none" in reason
    assert entry["summary"] == "not evaluated"
    assert cluster.kubeconfigs == []


def test_a_machine_that_an_existing_clusters_list_no_longer_has_is_not_removed(cluster: Cluster) -> None:
    fewer = inputs("a", existing=True)

    provider(kubeconfig=TOKEN).update("c-1", inputs("a", "b", existing=True), fewer)

    assert cluster.targets[0].removed == frozenset()


def test_a_machine_that_an_existing_cluster_lacks_fails_the_check(cluster: Cluster) -> None:
    cluster.gone = ["b"]
    named = inputs(existing=True, machines=[{"name": "a"}, {"name": "b"}])

    [(_, reason)] = failures(provider(kubeconfig=TOKEN).check({}, named))

    assert reason.startswith("machine b is not in the cloud; allowed: names of nodes")


def test_a_stack_that_made_its_cluster_cannot_call_it_existing(cluster: Cluster) -> None:
    [(name, reason)] = failures(provider(kubeconfig=TOKEN).check(inputs(), inputs(existing=True)))

    assert (name, "would delete it" in reason) == ("existing", True)
    assert cluster.kubeconfigs == []


def test_a_state_from_before_there_were_existing_clusters_does_not_change() -> None:
    assert provider().diff("c-1", inputs(), inputs(plan=[])).changes is False
    assert provider().diff("c-1", inputs(), inputs(plan=[], existing=True)).changes is True


def test_the_provider_is_pickled_by_reference() -> None:
    """By value would tie states to one version of Python, and put what it captured into them."""
    text = serialize_provider(CloudControllerProvider())

    assert len(text) < 120


def test_the_cloud_controller_has_its_own_resource_type(run_program: Any) -> None:
    def program() -> None:
        CloudController(
            "x", cloud="mycloud", cluster_id="c", network_id="n", cluster_cidr="10.0.0.0/8", machines=[], executors={}
        )

    [*_, registration] = run_program(program).registrations

    assert registration.request.type == "pulumi-python:dynamic/cloudcontroller:CloudController"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"machines": [{"nam": "a"}]},
            "machines[0].nam: unknown argument; did you mean name? allowed: name, provider_id",
        ),
        ({"machines": [], "pools": [{"name": "a"}]}, "pools[0].count: is missing"),
    ],
)
def test_a_mistyped_machine_or_pool_ends_the_program_with_a_line_that_names_it(
    run_program: Any, given: dict[str, Any], said: str
) -> None:
    def program() -> None:
        arguments: Any = {"cloud": "mycloud", "cluster_id": "c", "network_id": "n", "cluster_cidr": "10.0.0.0/8"}
        CloudController("x", **arguments, **given, executors={})

    with pytest.raises(WrongInput) as caught:
        run_program(program)

    assert str(caught.value).startswith("CloudController 'x' (") and said in str(caught.value)


def test_the_plan_is_logged_before_a_create_or_update_beside_the_programs_hooks(run_program: Any) -> None:
    def program() -> None:
        own = pulumi.ResourceHook("own", lambda _: None)
        arguments: Any = {"cloud": "mycloud", "cluster_id": "c", "network_id": "n", "cluster_cidr": "10.0.0.0/8"}
        opts = pulumi.ResourceOptions(hooks=pulumi.ResourceHookBinding(before_create=[own]))
        CloudController("x", **arguments, machines=[], executors={}, opts=opts)

    [*_, registration] = run_program(program).registrations

    assert list(registration.request.hooks.before_create) == ["plan-of-x", "own"]
    assert list(registration.request.hooks.before_update) == ["plan-of-x"]


@pytest.mark.integration
def test_through_the_real_dynamic_server_a_first_preview_shows_the_assumed_plan() -> None:
    from local.plugins.values import UNKNOWN as WIRE_UNKNOWN

    urn = "urn:pulumi:s::cloud-controller::pulumi-python:dynamic/cloudcontroller:CloudController::x"
    server = DynamicServer(ROOT, "cloud-controller", lambda _: None)
    try:
        news = {
            **inputs(cluster_id=WIRE_UNKNOWN, network_id=WIRE_UNKNOWN, cluster_cidr=WIRE_UNKNOWN),
            "machines": [{"name": "a", "provider_id": WIRE_UNKNOWN}],
            "__provider": serialize_provider(CloudControllerProvider()),
        }
        result = DynamicChecks(server, {}).check(urn, {}, news)
    finally:
        server.close()

    assert [entry["target"] for entry in result.inputs["plan"]] == ["node/a", "route/pods-of-a"]
    assert result.inputs["cluster_id"] is WIRE_UNKNOWN


def test_drift_counts_as_a_change_until_an_update(cluster: Cluster) -> None:
    cluster.steps = [MISSING]
    read = provider().read("c-1", {**inputs(), "plan": [], "drift": []})

    assert provider().diff("c-1", read.outs or {}, {**inputs(), "plan": []}).changes

    mended = provider().update("c-1", read.outs or {}, inputs()).outs or {}
    assert not provider().diff("c-1", mended, {**inputs(), "plan": []}).changes
