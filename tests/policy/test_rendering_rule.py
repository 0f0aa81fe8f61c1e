"""Rule `stack-render-objects`."""

from __future__ import annotations

from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import UNKNOWN, Secret
from tests.policy_objects import of, resource, service

RULE = "stack-render-objects"


def found(pack: PolicyHost, *resources: AnalyzedResource) -> list[str]:
    return [finding.message for finding in pack.analyze_stack([*resources]) if finding.policy == RULE]


def command(**props: Any) -> AnalyzedResource:
    return resource("command:local:Command", props)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("kubernetes:helm.sh/v3:Release", "Helm"),
        ("kubernetes:helm.toolkit.fluxcd.io/v2:HelmRelease", "Flux"),
        ("kubernetes:kustomize.toolkit.fluxcd.io/v1:Kustomization", "Flux"),
        ("kubernetes:argoproj.io/v1alpha1:Application", "Argo CD"),
        ("kubernetes:helm.cattle.io/v1:HelmChart", "the Helm controller"),
    ],
)
def test_what_is_rendered_outside_of_the_program_is_said_not_to_be_evaluated(
    pack: PolicyHost, kind: str, what: str
) -> None:
    release = resource(kind, {"chart": "aws-cloud-controller-manager"})

    [finding] = [each for each in pack.analyze_stack([release]) if each.policy == RULE]

    assert (finding.level, finding.severity, finding.urn) == ("advisory", "high", release.urn)
    assert finding.message == (
        f"not evaluated: {what} renders its objects outside of the program, so no rule has judged them"
    )


COMPONENTS = [
    "kubernetes:helm.sh/v3:Chart",
    "kubernetes:helm.sh/v4:Chart",
    "kubernetes:yaml:ConfigFile",
    "kubernetes:yaml/v2:ConfigFile",
    "kubernetes:yaml/v2:ConfigGroup",
    "kubernetes:kustomize:Directory",
    "kubernetes:kustomize/v2:Directory",
]


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_component_that_renders_in_the_program_passes(pack: PolicyHost, kind: str) -> None:
    component = resource(kind, {})

    assert found(pack, component, service(parent=component.urn)) == []


@pytest.mark.parametrize("kind", COMPONENTS)
def test_a_component_that_rendered_nothing_in_this_preview_is_reported(pack: PolicyHost, kind: str) -> None:
    other = resource("my:index:Platform", {}, "platform")

    [message] = found(pack, resource(kind, {}), other, service(parent=other.urn))

    assert message.startswith("not evaluated: it rendered no objects, as in a preview with an unknown input")


@pytest.mark.parametrize(
    "props",
    [
        {"create": "kubectl apply -f ccm.yaml"},
        {"create": "true", "update": "kubectl --kubeconfig=a apply -k ."},
        {"create": "helm upgrade --install ccm ./chart"},
        {"create": Secret("KUBECONFIG=hush kubectl create -f ccm.yaml")},
    ],
)
def test_a_command_that_creates_objects_is_reported_without_its_text(pack: PolicyHost, props: Any) -> None:
    [message] = found(pack, command(**props))

    assert message == ("not evaluated: its command creates objects outside of the program, so no rule has judged them")


@pytest.mark.parametrize(
    "create", ["kubectl wait --for=condition=Ready nodes --all", "kubectl get nodes", "helm repo update", "make", None]
)
def test_a_command_that_creates_no_objects_passes(pack: PolicyHost, create: str | None) -> None:
    assert found(pack, command(create=create)) == []


def test_an_unknown_command_is_not_evaluated(pack: PolicyHost) -> None:
    assert of(pack.analyze_stack([command(create=UNKNOWN)]), RULE) == ["not-evaluated"]
