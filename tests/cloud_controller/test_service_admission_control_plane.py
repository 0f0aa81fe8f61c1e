"""The admission policies made from the catalogues, on a real API server: every entry of every cloud."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from cloud_controller import clouds, service_admission
from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import NAMESPACES, SERVICES, ApiError, Kube, PatchType
from cloud_controller.load_balancers import restrictions
from cloud_controller.load_balancers.annotation import Annotation
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.service_admission import LABEL, Mode
from tests.control_planes import running_control_plane
from tests.waiting import eventually

pytestmark = pytest.mark.control_plane

_numbers = itertools.count()


@pytest.fixture(scope="module")
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    with running_control_plane(tmp_path_factory.mktemp("control-plane")) as control_plane:
        yield Kube.from_file(control_plane.directory / "admin.kubeconfig")


class Admission:
    """A namespace in which a cloud's policies count."""

    def __init__(self, kube: Kube, cloud: str, mode: Mode = Mode.DENY) -> None:
        found = clouds.descriptor(cloud)
        self.kube = kube
        self.catalogue = found.catalogue
        self.classes = {None, *found.load_balancer_classes}
        self.namespace = f"admission-{next(_numbers)}"
        kube.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        for each in service_admission.make(found.catalogue, self.classes, mode, {}):
            if each["kind"] == "ValidatingAdmissionPolicyBinding":
                only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [self.namespace]}
                each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"].append(only)
            each["metadata"]["name"] = f"{self.namespace}-{each['metadata']['name']}"
            if "policyName" in each["spec"]:
                each["spec"]["policyName"] = f"{self.namespace}-{each['spec']['policyName']}"
            kube.create(kube.resource(each["apiVersion"], each["kind"]), each)
        for each in self.kinds:
            unknown = {f"{each.prefixes[0]}no-such-annotation": "x"}
            eventually(lambda: self.answer(unknown, each), "the policy counts")  # noqa: B023 — called at once

    @property
    def kinds(self) -> tuple[Catalogue, ...]:
        return self.catalogue.kinds or (self.catalogue,)

    def answer(self, annotations: dict[str, str], kind: Catalogue) -> str | None:
        """What the API server says against a Service of this kind; None: it admits it."""
        spec: dict[str, Any] = {"type": "LoadBalancer", "ports": [{"port": 80}]}
        load_balancer_class = next((each for each in kind.classes if each in self.classes), None)
        if load_balancer_class is not None:
            spec["loadBalancerClass"] = load_balancer_class
        service = {"metadata": {"name": "web", "annotations": annotations}, "spec": spec}
        try:
            self.kube.create(SERVICES, service, self.namespace, dry_run=True)
        except ApiError as error:
            return str(error)
        return None


@pytest.fixture(scope="module", params=["mycloud", "aws", "alicloud"])
def admission(request: pytest.FixtureRequest, kube: Kube) -> Admission:
    return Admission(kube, request.param)


def texts(entry: Annotation) -> list[str]:
    """Texts for an annotation: what is allowed, what is just outside, and what nobody would write on purpose."""
    found = ["", " ", "x", "true", "TRUE", "0", "-1", "1.5", "on", ",", "a,b", "ein Text", "x" * 300, "a\nb", "'\"\\"]
    found += [*entry.allowed, *(word.upper() for word in entry.allowed), *entry.refused, *entry.harmless]
    found += [
        str(number + more) for number in (entry.minimum, entry.maximum) if number is not None for more in (-1, 0, 1)
    ]
    found += [*entry.true_words, *entry.false_words]
    found += [] if entry.example is None else [entry.example, f" {entry.example} ", f"{entry.example}!"]
    return list(dict.fromkeys(found))


def said_by_parser(catalogue: Catalogue, annotations: dict[str, str]) -> str | None:
    if catalogue.empty_is_unset:
        annotations = {name: text for name, text in annotations.items() if text.strip()}
    try:
        catalogue.parse(annotations)
    except InvalidConfiguration as error:
        return str(error)
    return None


def is_said(expected: str | None, answer: str | None) -> bool:
    """Whether the API server answers what the parser says; only the quotes around odd values may differ."""
    if expected is None or answer is None:
        return expected is answer
    before, _, after = expected.partition(": ")
    return f"{before}: " in answer and after[after.rfind("'") if "'" not in after.partition(" (")[2] else 0 :] in answer


def test_the_api_server_admits_what_the_parser_accepts_and_refuses_the_rest_in_its_words(admission: Admission) -> None:
    differences = []
    for kind in admission.kinds:
        for entry in kind:
            if entry.name == restrictions.SOURCE_RANGES:
                continue  # Kubernetes' own: the API server judges it before any policy.
            one = entry.member(entry.suffix_example) if entry.suffix else entry
            for text in texts(entry):
                expected, answer = said_by_parser(kind, {one.name: text}), admission.answer({one.name: text}, kind)
                if not is_said(expected, answer):
                    differences.append((kind.kind, one.name, text, expected, answer))

    assert not differences, "\n".join(map(str, differences[:20]))


def test_a_namespace_chooses_its_mode(kube: Kube) -> None:
    denied = Admission(kube, "mycloud")
    [kind] = denied.kinds
    wrong = {f"{kind.prefixes[0]}no-such-annotation": "x"}

    labels = {"metadata": {"labels": {LABEL: "off"}}}
    kube.patch(NAMESPACES, denied.namespace, labels, type=PatchType.MERGE)

    eventually(lambda: denied.answer(wrong, kind) is None, "the namespace is left alone")
