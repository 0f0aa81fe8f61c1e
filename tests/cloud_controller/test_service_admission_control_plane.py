"""The admission policies made from the catalogues, on a real API server: every entry of every cloud."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cloud_controller import clouds, service_admission
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.refusals import MOST_LISTENERS
from cloud_controller.kube import NAMESPACES, SERVICES, ApiError, Kube, Object, PatchType
from cloud_controller.load_balancers import restrictions
from cloud_controller.load_balancers.annotation import Annotation
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.nameable import Nameable, named
from cloud_controller.load_balancers.readiness_gates import ANNOTATION, ReadinessGates
from cloud_controller.load_balancers.refusals import Refusal, refuse
from cloud_controller.load_balancers.sharing import Sharing
from cloud_controller.service_admission import LABEL, Admission, Limits
from policy.checklist.annotations import problems
from policy.rules import Stack
from policy.subjects import Subject
from tests.cloud_controller.combinations import (
    AWS,
    BOUNDS,
    CERTIFICATE,
    CLB,
    EVERYBODY,
    HTTPS,
    IPV6_RANGES,
    MYCLOUD,
    NLB,
    OPENSTACK,
    PAIRS,
    RANGES,
    SCTP,
    TCP,
    Asked,
    build,
    claims,
    some,
)
from tests.sampling import mostly_nightly
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

_numbers = itertools.count()


class Cluster:
    """A namespace in which a cloud's policies count."""

    def __init__(self, kube: Kube, cloud: str, mode: Admission = Admission.DENY, limits: Limits | None = None) -> None:
        found = clouds.descriptor(cloud)
        self.kube = kube
        self.catalogue = found.catalogue
        self.classes = {None, *found.load_balancer_classes}
        self.namespace = f"admission-{next(_numbers)}"
        kube.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        for each in service_admission.make(found.catalogue, self.classes, mode, {}, found.of_others, limits):
            if each["kind"] == "ValidatingAdmissionPolicyBinding":
                only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [self.namespace]}
                each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"].append(only)
            each["metadata"]["name"] = f"{self.namespace}-{each['metadata']['name']}"
            if "policyName" in each["spec"]:
                each["spec"]["policyName"] = f"{self.namespace}-{each['spec']['policyName']}"
            kube.create(kube.resource(each["apiVersion"], each["kind"]), each)
        for kind in self.kinds:
            eventually(lambda: self.answer(wrong(kind), kind), "the policy counts")  # noqa: B023 — called at once

    @property
    def kinds(self) -> tuple[Catalogue, ...]:
        return self.catalogue.kinds or (self.catalogue,)

    def answer(self, annotations: dict[str, str], kind: Catalogue, **spec: Any) -> str | None:
        """What the API server says against a Service of this kind; None: it admits it."""
        load_balancer_class = next((each for each in kind.classes if each in self.classes), None)
        of_kind = {} if load_balancer_class is None else {"loadBalancerClass": load_balancer_class}
        given = {"type": "LoadBalancer", "ports": [{"port": 80}], **of_kind, **spec}
        return self.judged({"metadata": {"name": "web", "annotations": annotations}, "spec": given})

    def judged(self, service: Object) -> str | None:
        """What the API server says against this Service; None: it admits it."""
        try:
            self.kube.create(SERVICES, service, self.namespace, dry_run=True)
        except ApiError as error:
            return str(error)
        return None


@pytest.fixture(scope="module")
def with_policies(kube: Kube) -> Callable[..., Cluster]:
    """Makes each cluster once: an API server takes seconds of processor time for each policy."""

    @functools.cache
    def make(cloud: str, nameable: Nameable = Nameable(), config: str = "") -> Cluster:  # noqa: B008 - frozen
        return Cluster(kube, cloud, limits=Limits(nameable, of_config=rules_of(cloud, config) if config else {}))

    return make


def rules_of(cloud: str, config: str) -> Mapping[str, tuple[Refusal, ...]]:
    """What the cloud config forbids, by kind."""
    of_config = clouds.descriptor(cloud).of_config
    assert of_config is not None
    return of_config(config).refusals


@pytest.fixture(scope="module", params=["mycloud", "aws", "alicloud", "openstack"])
def admission(request: pytest.FixtureRequest, with_policies: Callable[..., Cluster]) -> Cluster:
    return with_policies(request.param)


def texts(entry: Annotation) -> list[str]:
    """Texts for an annotation: what is allowed, what is just outside, and what nobody would write on purpose."""
    found = ["", " ", "x", "true", "TRUE", "0", "-1", "1.5", "on", ",", "a,b", "ein Text", "x" * 300, "a\nb", "'\"\\"]
    found += [",".join(["a=b"] * (entry.most + more)) for more in (0, 1)] if entry.type is tuple else []
    found += ["~" + "(.*)" * 30 + "Z"]  # of a pattern
    found += [*entry.allowed, *(word.upper() for word in entry.allowed), *entry.refused, *entry.harmless]
    # Folded by Unicode, these letters are an s and a k.
    found += [word.replace(a, b) for word in entry.allowed for a, b in (("s", "\u017f"), ("k", "\u212a"))]
    found += [
        str(number + more) for number in (entry.minimum, entry.maximum) if number is not None for more in (-1, 0, 1)
    ]
    found += [*entry.true_words, *entry.false_words]
    found += [] if entry.example is None else [entry.example, f" {entry.example} ", f"{entry.example}!"]
    return list(dict.fromkeys(found))


def stored(kube: Kube, service: Object) -> Object:
    """The Service as an API server completes it, where no policy counts."""
    return kube.create(SERVICES, service, "default", dry_run=True)


def said_by_controller(kind: Catalogue, service: Object) -> str | None:
    """What the controller says against this Service."""
    try:
        refuse(kind.parse(service["metadata"].get("annotations")), service["spec"], kind.refusals)
    except InvalidConfiguration as error:
        return str(error)
    return None


def is_refused_in_a_program(kind: Catalogue, service: Object) -> bool:
    """Whether the policy pack's rule has something to say against the Service, beside the cloud's controller."""
    container = {"name": "ccm", "image": "cloud-controller:1", "args": [f"--cloud={kind.cloud}"]}
    template = {"spec": {"containers": [container]}}
    manager = Subject("apps/DaemonSet", {"spec": {"template": template}}, "ccm", {})
    stack = Stack([manager, Subject("core/Service", service, "web", {})], {}, print)
    return any(problem() for _, problem in problems(stack))


def is_said(expected: str | None, answer: str | None) -> bool:
    """Whether the API server answers what the controller says, but for nearest names and the quotes of odd values."""
    if expected is None or answer is None:
        return expected is answer
    before, _, after = expected.partition("; did you mean ")[0].partition(": ")
    if len(expected) > 1200:  # Cut short.
        return f"{before}: " in answer and "\u2026" in answer
    return f"{before}: " in answer and after[after.rfind("'") if "'" not in after.partition(" (")[2] else 0 :] in answer


# Hundreds of texts, each judged several times: half a minute where nothing else runs.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kind", mostly_nightly([MYCLOUD, AWS, CLB, NLB, OPENSTACK]), ids=lambda kind: f"{kind.cloud}{kind.kind}"
)
def test_the_api_server_admits_what_the_parser_and_the_policy_pack_accept_and_refuses_the_rest_in_its_words(
    kube: Kube, with_policies: Callable[..., Cluster], kind: Catalogue
) -> None:
    admission = with_policies(kind.cloud)
    plain = stored(kube, Asked(kind).service())
    differences = []
    for entry in kind:
        if entry.name == restrictions.SOURCE_RANGES:
            continue  # Kubernetes' own: the API server judges it before any policy.
        one = entry.member(entry.suffix_example) if entry.suffix else entry
        for text in texts(entry):
            annotations = Asked(kind).annotations | {one.name: text}
            asked = plain | {"metadata": {"annotations": annotations}}
            expected, answer = said_by_controller(kind, asked), admission.answer(annotations, kind)
            written = Asked(kind).service() | {"metadata": {"name": "web", "annotations": annotations}}
            in_program = is_refused_in_a_program(kind, written)
            if not is_said(expected, answer) or in_program is not (answer is not None):
                differences.append((one.name, text, expected, in_program, answer))

    assert not differences, "\n".join(map(str, differences[:20]))


def wrong(kind: Catalogue) -> dict[str, str]:
    """An annotation that no kind has."""
    return {f"{kind.prefixes[0]}no-such-annotation": "x"}


def test_an_annotation_without_text_is_judged_as_by_the_controller(admission: Cluster) -> None:
    for kind in admission.kinds:
        asked = Asked(kind)
        found = [asked.annotations | dict.fromkeys(wrong(kind), "")]
        if kind is NLB:
            # Its empty list is a value.
            empty = {NLB.by_argument["security_group_ids"].name: ""}
            found += [asked.annotations | empty, Asked(NLB, {"id": "nlb-0a"}).annotations | empty]
        for each in found:
            service = stored(admission.kube, asked.service() | {"metadata": {"name": "web", "annotations": each}})
            assert is_said(said_by_controller(kind, service), admission.answer(each, kind)), each


def test_a_slip_in_the_clouds_prefix_is_refused_in_the_controllers_words(admission: Cluster) -> None:
    kind = admission.kinds[0]
    # OpenStack's first prefix is a whole domain.
    prefix = next(each for each in kind.prefixes if not each.endswith("/"))
    domain, _, rest = prefix.partition("/")
    name = next(entry.name.removeprefix(prefix) for entry in kind if entry.name.startswith(prefix) and not entry.suffix)
    for slip in (rest[1:], rest[1] + rest[0] + rest[2:], f"x{rest}", rest.replace("-", "_", 1), rest[:-1]):
        annotations = Asked(kind).annotations | {f"{domain}/{slip}{name}": "x"}
        service = stored(
            admission.kube, {**Asked(kind).service(), "metadata": {"name": "web", "annotations": annotations}}
        )
        answer = admission.answer(annotations, kind)

        assert is_said(said_by_controller(kind, service), answer), slip
        assert answer is not None

    assert (
        admission.answer(Asked(kind).annotations | {f"{domain}/another-cloud-{name or kind.cloud}": "x"}, kind) is None
    )


def test_all_that_is_wrong_is_answered_at_once(admission: Cluster) -> None:
    kind = admission.kinds[0]
    numbers = [entry for entry in kind if entry.type is int and entry.maximum is not None and not entry.ignored][:2]

    answer = admission.answer({entry.name: "-7" for entry in numbers}, kind) or ""

    assert all(entry.name in answer for entry in numbers)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("service.beta.kubernetes.io/some-cloud-allowed-cidrs", "10.0.0.0/8"),
        ("networking.example.com/load-balancer-type", "Internal"),
    ],
)
def test_another_clouds_annotation_that_restricts_access_is_refused_in_the_controllers_words(
    admission: Cluster, name: str, text: str
) -> None:
    kind = admission.kinds[0]

    answer = admission.answer({name: text}, kind)

    assert is_said(said_by_controller(kind, {"metadata": {"annotations": {name: text}}, "spec": {}}), answer)
    assert answer is not None


AT_RANDOM = {"mycloud": 220, "aws": 100, "alicloud": 120, "openstack": 320}
"""Services of each cloud besides those of the table."""


def test_wrong_services_are_refused_here_and_in_programs_and_right_ones_admitted(admission: Cluster) -> None:
    differences, wrongs, rights = [], 0, 0
    for kind in admission.kinds:
        for asked in (
            *(each for both in (*PAIRS, *BOUNDS) for each in both if each.kind is kind),
            *some(kind, AT_RANDOM[kind.cloud] // len(admission.kinds)),
        ):
            service = stored(admission.kube, asked.service())
            is_claimed = claims(kind, service)
            expected = said_by_controller(kind, service) if is_claimed else None
            built = build(kind, service)
            answer = admission.judged(asked.service())
            in_program = is_refused_in_a_program(kind, asked.service())
            # What the build refuses besides depends on the cloud.
            if (
                not is_said(expected, answer)
                or (expected is not None and built != expected)
                # The rule judges what another controller reads of the same annotations too.
                or (is_claimed and in_program is not (answer is not None))
            ):
                differences.append((asked.arguments, asked.ports, asked.spec, expected, built, in_program, answer))
            wrongs, rights = wrongs + (expected is not None), rights + (expected is None)

    assert not differences, "\n".join(map(str, differences[:20]))
    assert min(wrongs, rights) >= 70, (wrongs, rights)


LISTED = Nameable.parse(
    [
        "certificate=arn:aws:acm:*:123456789012:certificate/[!x]*",
        "certificate=c-?",
        "subnet=subnet-0*",
        "subnet=vsw-0*",
        "elastic-ip=eip-*",
        "log-bucket=logs",
        "security-group=tag:shared",
        "prefix-list=pl-0*",
        "access-control-list=acl-0*",
        "floating-ip=203.0.113.*",
        "network=0*",
    ]
)


def _groups(named: int, extra: int) -> Asked:
    """A Service that names so many security groups."""
    groups = {"security_groups": named, "extra_security_groups": extra}
    return Asked(AWS, {name: ",".join(f"sg-{at}" for at in range(count)) for name, count in groups.items()})


def _network(digit: str) -> Asked:
    return Asked(OPENSTACK, {"network_id": "-".join(digit * size for size in (8, 4, 4, 4, 12))})


_LOGS = {"type": "nlb", "attributes": "access_logs.s3.enabled=true,access_logs.s3.bucket=other"}


@pytest.mark.parametrize(
    ("cloud", "wrong", "right"),
    [
        ("aws", Asked(AWS, {"ssl_cert": "arn:aws:acm:eu-west-1:999999999999:certificate/1"}), Asked(AWS)),
        (
            "aws",
            Asked(AWS, {"subnets": "subnet-0a,subnet-1a"}),
            # A Name tag, whose subnet's ID may be on the list; and groups, whose tags may be.
            Asked(AWS, {"subnets": "subnet-0a,edge", "security_groups": "sg-0a"}),
        ),
        (
            "aws",
            Asked(AWS, {"security_group_prefix_lists": "pl-0a,pl-1a"}),
            Asked(AWS, {"security_group_prefix_lists": "pl-0a"}),
        ),
        (
            "alicloud",
            Asked(CLB, {"acl_id": "acl-1", "acl_status": "on"}),
            Asked(CLB, {"acl_id": "acl-01", "acl_status": "on"}),
        ),
        # Of floating IPs, only the controller knows whether the cloud config makes all load balancers internal.
        ("openstack", _network("1"), Asked(OPENSTACK, spec={"loadBalancerIP": "198.51.100.9"})),
        ("openstack", _network("1"), _network("0")),
        ("aws", Asked(AWS, _LOGS), Asked(AWS, {**_LOGS, "attributes": "access_logs.s3.bucket=other"})),
        ("alicloud", Asked(NLB, {"zone_maps": "cn-k:vsw-0a,cn-l:vsw-1a"}), Asked(NLB, {"zone_maps": "cn-k:vsw-0a"})),
        (
            "alicloud",
            Asked(CLB, {"vswitch_id": "vsw-1", "address_type": "intranet"}),
            Asked(CLB, {"vswitch_id": "vsw-1"}),
        ),
        (
            "alicloud",
            Asked(CLB, {"protocol_port": "http:80,https:443", "cert_id": "c-12"}, (TCP, HTTPS)),
            Asked(CLB, {"protocol_port": "http:80,https:443", "cert_id": "c-1"}, (TCP, HTTPS)),
        ),
    ],
)
def test_what_the_administrators_list_does_not_name_is_refused_in_the_controllers_words(
    kube: Kube, with_policies: Callable[..., Cluster], cloud: str, wrong: Asked, right: Asked
) -> None:
    cluster = with_policies(cloud, LISTED)
    service = stored(kube, wrong.service())

    with pytest.raises(InvalidConfiguration) as refused:
        settings = wrong.kind.parse(service["metadata"].get("annotations"))
        LISTED.require(named(wrong.kind.namings, settings, service["spec"]))
    assert is_said(str(refused.value), cluster.judged(wrong.service()))
    assert cluster.judged(right.service()) is None


_GROUP = "[Global]\nKubernetesClusterID = prod-1\nElbSecurityGroup = sg-0e\n"
_NO_VSWITCH = '{"Global": {"clusterID": "c-1", "region": "cn-hangzhou", "vpcid": "vpc-1"}}'


@pytest.mark.parametrize(
    ("cloud", "config", "wrong", "right"),
    [
        ("aws", _GROUP, Asked(AWS, spec=RANGES), Asked(AWS, spec=EVERYBODY)),
        ("aws", _GROUP, Asked(AWS, {"load_balancer_source_ranges": "10.0.0.0/8"}), Asked(AWS)),
        (
            "aws",
            _GROUP,
            Asked(AWS, {"security_group_prefix_lists": "pl-0a"}),
            Asked(AWS, {"security_group_prefix_lists": "pl-0a"}, spec=EVERYBODY),
        ),
        ("aws", _GROUP, _groups(0, 4), _groups(0, 3)),
        ("aws", _GROUP, _groups(2, 3), _groups(2, 2)),
        ("aws", _GROUP, _groups(5, 0), _groups(4, 0)),
        ("aws", f"{_GROUP}DisableSecurityGroupIngress = true\n", _groups(6, 0), _groups(5, 0)),
        (
            "alicloud",
            _NO_VSWITCH,
            Asked(CLB, {"address_type": "intranet"}),
            Asked(CLB, {"address_type": "intranet", "vswitch_id": "vsw-1"}),
        ),
        (
            "alicloud",
            _NO_VSWITCH,
            Asked(CLB, {"address_type": "intranet"}),
            Asked(CLB, {"address_type": "intranet", "id": "lb-1"}),
        ),
    ],
)
def test_what_the_cloud_config_forbids_is_refused_in_the_controllers_words(
    kube: Kube, with_policies: Callable[..., Cluster], cloud: str, config: str, wrong: Asked, right: Asked
) -> None:
    cluster = with_policies(cloud, config=config)
    rules = rules_of(cloud, config)[wrong.kind.kind]
    service = stored(kube, wrong.service())

    with pytest.raises(InvalidConfiguration) as refused:
        refuse(wrong.kind.parse(service["metadata"].get("annotations")), service["spec"], rules)
    assert is_said(str(refused.value), cluster.judged(wrong.service()))
    assert cluster.judged(right.service()) is None


def test_a_load_balancer_to_share_is_refused_where_the_administrator_switched_sharing_off(kube: Kube) -> None:
    cluster = Cluster(kube, "mycloud", limits=Limits(sharing=Sharing.OFF))

    answer = cluster.judged(Asked(MYCLOUD, {"id": "lb-0a"}).service()) or ""

    assert (
        "dlb-id: load balancer lb-0a cannot be shared: the controller runs with --shared-load-balancers=off" in answer
    )


def test_the_annotation_for_readiness_gates_is_checked_on_every_cloud(admission: Cluster) -> None:
    asked = Asked(admission.kinds[0])
    wrong, right = ({**asked.annotations, ANNOTATION: word} for word in ("on", "false"))

    with pytest.raises(InvalidConfiguration) as refused:
        ReadinessGates().asked({"metadata": {"annotations": wrong}})
    assert is_said(str(refused.value), admission.answer(wrong, asked.kind))
    assert admission.answer(right, asked.kind) is None


def test_two_names_of_one_annotation_that_contradict_each_other_are_refused(
    kube: Kube, with_policies: Callable[..., Cluster]
) -> None:
    cluster = with_policies("alicloud")
    entry = CLB.by_argument["scheduler"]
    annotations = {entry.name: "wrr", entry.aliases[0]: "rr"}
    service = stored(kube, Asked(CLB).service() | {"metadata": {"name": "web", "annotations": annotations}})

    assert is_said(said_by_controller(CLB, service), cluster.answer(annotations, CLB))
    assert cluster.answer({**annotations, entry.aliases[0]: " wrr "}, CLB) is None


def test_services_that_the_controller_does_not_serve_are_left_alone(admission: Cluster) -> None:
    kind = admission.kinds[0]

    assert admission.answer(wrong(kind), kind, loadBalancerClass="example.com/others") is None
    assert admission.answer(wrong(kind), kind, type="ClusterIP", loadBalancerClass=None) is None


def test_what_an_annotation_leaves_to_another_controller_is_left_alone(with_policies: Callable[..., Cluster]) -> None:
    aws = with_policies("aws")
    [kind] = aws.kinds
    name = kind.by_argument["type"].name

    assert aws.answer({**wrong(kind), name: "external"}, kind) is None
    assert aws.answer({**wrong(kind), name: "nlb"}, kind) is not None


def test_a_service_from_before_keeps_its_annotations_until_they_or_its_spec_change(
    kube: Kube, request: pytest.FixtureRequest
) -> None:
    cluster = Cluster(kube, "mycloud")
    [kind] = cluster.kinds
    label = {"metadata": {"labels": {LABEL: "off"}}}
    kube.patch(NAMESPACES, cluster.namespace, label, type=PatchType.MERGE)
    eventually(lambda: cluster.answer(wrong(kind), kind) is None, "the namespace is left alone")
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    service = {"metadata": {"name": "old", "annotations": wrong(kind)}, "spec": spec}
    request.addfinalizer(lambda: kube.delete(SERVICES, "old", cluster.namespace))
    kube.create(SERVICES, service, cluster.namespace)
    kube.patch(NAMESPACES, cluster.namespace, {"metadata": {"labels": {LABEL: None}}}, type=PatchType.MERGE)
    eventually(lambda: cluster.answer(wrong(kind), kind) is not None, "the policy counts again")

    def patched(change: dict[str, Any]) -> None:
        kube.patch(SERVICES, "old", change, cluster.namespace, type=PatchType.MERGE)

    patched({"metadata": {"finalizers": ["example.com/finalizer"]}})
    patched({"metadata": {"finalizers": None, "labels": {"team": "web"}}})
    with pytest.raises(ApiError, match="no-such-annotation: unknown on mycloud"):
        patched({"spec": {"ports": [{"port": 81}]}})


def test_a_port_has_its_node_port_before_it_is_judged(
    kube: Kube, with_policies: Callable[..., Cluster], request: pytest.FixtureRequest
) -> None:
    cluster = with_policies("mycloud")
    ports = [{"name": "web", "port": 80}, {"name": "tls", "port": 443}]
    service = {"metadata": {"name": "right"}, "spec": {"type": "LoadBalancer", "ports": ports[:1]}}

    request.addfinalizer(lambda: kube.delete(SERVICES, "right", cluster.namespace))
    kube.create(SERVICES, service, cluster.namespace)
    changed = kube.patch(SERVICES, "right", {"spec": {"ports": ports}}, cluster.namespace, type=PatchType.MERGE)

    assert all(port["nodePort"] for port in changed["spec"]["ports"])


@pytest.mark.parametrize("mode", [Admission.OFF, Admission.WARN])
def test_a_namespace_chooses_its_mode(kube: Kube, mode: Admission) -> None:
    denied = Cluster(kube, "mycloud")
    [kind] = denied.kinds
    assert denied.answer(wrong(kind), kind) is not None
    labels = {"metadata": {"labels": {LABEL: mode}}}
    kube.patch(NAMESPACES, denied.namespace, labels, type=PatchType.MERGE)

    eventually(lambda: denied.answer(wrong(kind), kind) is None, "the Service is admitted")


def test_a_service_with_many_ports_and_words_is_judged_within_the_api_servers_limits(admission: Cluster) -> None:
    for kind in admission.kinds:
        numbers = range(1000, 1000 + (MOST_LISTENERS if kind is AWS else MANY))
        ports = tuple({"name": f"p{number}", "protocol": "TCP", "port": number} for number in numbers)
        of_kind = {
            "CLB": {"protocol_port": ",".join(f"http:{number}" for number in numbers)},
            "NLB": {"protocol_port": ",".join(f"tcpssl:{number}" for number in numbers), "cert_id": "c-1"},
            "aws": {"type": "nlb", "ssl_cert": CERTIFICATE, "ssl_ports": ",".join(map(str, numbers))},
        }
        long = of_kind.get(kind.kind or kind.cloud, {})
        good = Asked(kind, long, ports)
        # Octavia takes SCTP.
        bad = Asked(kind, long, ports, IPV6_RANGES) if kind is OPENSTACK else Asked(kind, long, (*ports, SCTP))

        assert admission.judged(good.service()) is None
        expected = said_by_controller(kind, stored(admission.kube, bad.service()))
        assert expected is not None
        assert is_said(expected, admission.judged(bad.service()))


MANY = 100
"""Ports: more than any Service of ours has."""
