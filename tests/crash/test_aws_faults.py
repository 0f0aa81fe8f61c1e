"""As `test_faults`, for the daemon on AWS (moto), whose answers the proxy gives in AWS's own forms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial

import pytest

from benchmarks.aws.account import KEY, REGION
from cloud_controller.controllers.nodes import condition
from cloud_controller.controllers.service.rules import FINALIZER
from cloud_controller.kube import EVENTS, NODES
from tests.crash.aws_environment import SETTINGS, AwsEnvironment, Kind, aws_environment
from tests.crash.aws_faults import (
    Asked,
    answering,
    answers,
    error,
    failing,
    in_use,
    lists_lag,
    mended_by_name,
    named,
    slow,
    throttled,
)
from tests.crash.aws_run import AwsRun
from tests.crash.aws_scenarios import WORK
from tests.crash.daemon import Daemon, Json, until
from tests.crash.proxy import Refusal
from tests.crash.scenarios import HTTP, HTTPS, SPACE, port
from tests.crash.trial import QUIET, Scenario, prepared
from tests.crash.under_fault import SHORT_SILENCE, SLOW, Fault, Outcome, endure, peace, work_under

pytestmark = [pytest.mark.control_plane, pytest.mark.timeout(400)]

FLAGS = ("--leader-elect=false", "--node-monitor-period=500ms")
SECONDS_A_CALL = 2.0
LAG = 2.0
IN_USE = 3.0


ONE = Scenario[AwsRun](
    "one load balancer",
    lambda run: (run.node(), run.service(HTTP)),
    lambda run: run.initialised(run.machines[0]) and run.serves("8080 TCP") and run.targets_are({0}),
    lambda run: run.delete_service(),
    lambda run: run.get_service() is None,
)

NODE = Scenario[AwsRun](
    "a node", lambda run: run.node(), lambda run: run.initialised(run.machines[0]), lambda _: None, lambda _: True
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsEnvironment]:
    """A real API server and moto; tests leave nothing in them."""
    with aws_environment(tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture
def daemon(environment: AwsEnvironment) -> Iterator[Daemon]:
    """One of a test's own, with proxies of its own."""
    with environment.daemon("faults", *FLAGS, prelude=SHORT_SILENCE) as made:
        yield seen_through(made)


def seen_through(daemon: Daemon) -> Daemon:
    """The daemon, the proxy before whose cloud sees what calls ask for."""
    daemon.cloud.naming, daemon.cloud.mending = named, mended_by_name
    return daemon


@pytest.fixture(scope="module")
def in_peace(environment: AwsEnvironment) -> Outcome:
    """The work without any fault."""
    with environment.daemon("peace", *FLAGS, prelude=SHORT_SILENCE) as made:
        return work_under(seen_through(made), lambda: AwsRun(environment), WORK, peace)


def _lists_lag(environment: AwsEnvironment) -> Fault[Daemon]:
    return lists_lag(environment.endpoint, LAG)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda _: answers(throttled), id="AWS: half of the calls are throttled"),
        pytest.param(lambda _: answers(failing), id="AWS: three of ten calls fail"),
        pytest.param(lambda _: slow(SECONDS_A_CALL), id="AWS: each call takes two seconds"),
        pytest.param(_lists_lag, id="AWS: lists are two seconds behind"),
        pytest.param(lambda _: answers(lambda: in_use(IN_USE)), id="AWS: what is deleted is in use for seconds"),
    ],
)
def test_it_comes_to_the_same_end_at_a_bounded_price_though(
    fault: Callable[[AwsEnvironment], Fault[Daemon]],
    environment: AwsEnvironment,
    daemon: Daemon,
    in_peace: Outcome,
    record_property: Callable[[str, object], None],
) -> None:
    endure(daemon, lambda: AwsRun(environment), WORK, fault(environment), in_peace, record_property)


def test_an_expired_session_stops_it_only_until_the_role_can_be_assumed_again(
    environment: AwsEnvironment, daemon: Daemon, in_peace: Outcome, record_property: Callable[[str, object], None]
) -> None:
    token = daemon.directory / "token"
    token.write_text("a ServiceAccount's token")
    daemon.variables = {
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/cloud-controller",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ENDPOINT_URL_STS": daemon.cloud.url,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    expired: set[str] = set()
    keys: set[str] = set()
    open_again = False

    def decide(asked: Asked) -> Refusal | None:
        if asked.name.endswith("AssumeRoleWithWebIdentity"):
            message = "Couldn't retrieve verification key from your identity provider"
            return None if open_again else error(asked.name, 400, "InvalidIdentityToken", message)
        keys.add(asked.key)
        if asked.key not in expired:
            return None
        code = "RequestExpired" if asked.name.startswith("ec2 ") else "ExpiredToken"
        return error(asked.name, 400 if asked.name.startswith("ec2 ") else 403, code, "The token has expired")

    def expiry(daemon: Daemon) -> Generator[None, None, None]:
        nonlocal open_again
        with answering(daemon, decide) as given:
            until(lambda: keys, "a call shows the key")
            expired.update(keys)
            yield
            until(lambda: given["unsigned AssumeRoleWithWebIdentity"], "the role is asked for again")
            open_again = True
            yield

    endure(daemon, lambda: AwsRun(environment), WORK, expiry, in_peace, record_property)

    assert KEY not in keys


@pytest.mark.nightly
@pytest.mark.parametrize(
    "quotas",
    [
        pytest.param(
            {
                "elbv2 CreateLoadBalancer": "TooManyLoadBalancers",
                "elb CreateLoadBalancer": "TooManyLoadBalancers",
                "ec2 CreateRoute": "RouteLimitExceeded",
            },
            id="load balancers and routes",
        ),
        pytest.param(
            {
                "elbv2 CreateTargetGroup": "TooManyTargetGroups",
                "ec2 AuthorizeSecurityGroupIngress": "RulesPerSecurityGroupLimitExceeded",
            },
            id="target groups and rules",
        ),
    ],
)
def test_what_goes_beyond_a_quota_is_told_and_done_once_there_is_room(
    quotas: Mapping[str, str], environment: AwsEnvironment, daemon: Daemon
) -> None:
    def decide(asked: Asked) -> Refusal | None:
        return error(asked.name, 400, quotas[asked.name], "the limit is reached") if asked.name in quotas else None

    daemon.start()
    with prepared(daemon, AwsRun(environment), NODE) as run:
        with answering(daemon, decide) as given:
            services = [run.service(HTTP), run.service(HTTPS, kind="classic")]
            machine = run.node()
            for service in services:
                until(partial(told, run, service, *quotas.values()), f"{service} says so")
            if "ec2 CreateRoute" in quotas:
                until(lambda: route_condition(run, machine.name) == "True", "the node says that it has no route")
            until(lambda: all(given[name] for name in quotas), "each quota was met")
            assert not run.load_balancers()
            assert given.total() <= 30, f"it is tried over and over: {given}"

        done: Sequence[tuple[str, Kind, int]] = (("8080 TCP", "network", 0), ("8443 TCP", "classic", 1))
        until(lambda: all(run.serves(each, kind=kind, of=of) for each, kind, of in done), "both serve", SLOW)
        until(lambda: run.initialised(machine), "the route is there", SLOW)


@pytest.mark.nightly
def test_a_service_is_there_until_its_security_group_is_gone_and_holds_up_no_other(
    environment: AwsEnvironment, daemon: Daemon
) -> None:
    def decide(asked: Asked) -> Refusal | None:
        if asked.name != "ec2 DeleteSecurityGroup":
            return None
        message = f"resource {asked.form['GroupId']} has a dependent object"
        return error(asked.name, 400, "DependencyViolation", message)

    daemon.start()
    with prepared(daemon, AwsRun(environment), ONE) as run:
        with answering(daemon, decide) as given:
            began = daemon.recorder.calls()[-1].at
            ONE.act(run)
            until(lambda: given["ec2 DeleteSecurityGroup"] >= 2, "it is tried again")
            # What all load balancers of the cluster share was to go with the last one.
            run.service(port(9090, 31090))

            until(lambda: run.serves("9090 TCP", of=1), "the other one serves")
            assert run.environment.left()["opened"], "the nodes let nobody in"
            until(lambda: given["ec2 DeleteSecurityGroup"] >= 5, "it is tried again and again")
            service = run.get_service()
            assert service is not None, "the Service is gone, and its group is not"
            assert service["metadata"]["finalizers"] == [FINALIZER]
            assert len(run.load_balancers()) == 1
            calls = Counter(call.path for call in daemon.recorder.calls(began))
            assert calls["elbv2 DeleteLoadBalancer"] == 1, calls

        until(lambda: ONE.done(run), "the Service is gone", SLOW)
        until(lambda: run.serves("9090 TCP", of=1) and daemon.recorder.quiet_for(QUIET), "the other one serves on")
        assert run.environment.left()["opened"], "the nodes let nobody in any more"


GOOD = 5
NETWORK = SETTINGS["network"]
WRONG: tuple[Mapping[str, str], ...] = (
    {"typ": "nlb"},
    {"type": "alb"},
    {**NETWORK, "subnets": "subnet-0123456789abcdef0"},
    {**NETWORK, "healthcheck-interval": "soon"},
    {**NETWORK, "private-ipv4-addresses": "10.0.0.300"},
    {**NETWORK, "security-groups": "web"},
)
OF_EACH = 5


@pytest.mark.nightly
def test_thirty_wrong_services_are_told_so_and_hold_up_no_good_one(environment: AwsEnvironment, daemon: Daemon) -> None:
    daemon.start()
    with prepared(daemon, AwsRun(environment), NODE) as run:
        began = daemon.recorder.calls()[-1].at
        wrong = [
            run.service(port(10_000 + number, 30_000 + number), kind="classic", settings=WRONG[number % len(WRONG)])
            for number in range(OF_EACH * len(WRONG))
        ]
        first = len(run.services)
        for number in range(GOOD):
            run.service(port(9000 + number, 31_900 + number))

        good = range(GOOD)
        until(lambda: all(run.serves(f"{9000 + each} TCP", of=first + each) for each in good), "all good ones serve")
        until(lambda: all(warnings_of(run, each) for each in wrong), "all wrong ones are told so")
        until(lambda: daemon.recorder.quiet_for(QUIET), "it is at rest")

        told = {each: [(event["reason"], event["message"]) for event in warnings_of(run, each)] for each in wrong}
        assert {name: events for name, events in told.items() if len(events) != 1} == {}
        assert len(run.load_balancers()) == GOOD
        calls = Counter(call.path for call in daemon.recorder.calls(began) if call.server == "aws")
        writes = Counter({name: number for name, number in calls.items() if not is_read(name)})
        # A group and its rules, target group, targets, load balancer and listener of each; what is shared, besides.
        assert writes.total() <= 6 * GOOD + 2, writes
        assert calls.total() - writes.total() <= 30, calls


def told(run: AwsRun, name: str, *words: str) -> bool:
    """Whether a warning at the Service has one of these words."""
    return any(word in event["message"] for event in warnings_of(run, name) for word in words)


def warnings_of(run: AwsRun, name: str) -> list[Json]:
    """The daemon's warnings at the Service; the API server's check of node ports may write one of its own."""
    events = [
        each for each in run.kube.list(EVENTS, SPACE).items if each.get("reportingComponent") == "service-controller"
    ]
    return [each for each in events if each["involvedObject"]["name"] == name and each["type"] == "Warning"]


def route_condition(run: AwsRun, node: str) -> str | None:
    """The status of the node's condition NetworkUnavailable."""
    found = condition(run.kube.get(NODES, node), "NetworkUnavailable")
    return None if found is None else str(found["status"])


def is_read(name: str) -> bool:
    """Whether a call of this name changes nothing."""
    return name.partition(" ")[2].startswith(("Describe", "Get", "List"))
