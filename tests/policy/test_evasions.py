"""The hidden ways around the rules that honest authors write: each is caught, by the rule that it would evade."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins.values import PropertyMap
from tests.policy_objects import CONTAINER, ccm, of, patch, resource, service, without

KEY = "AKIAQ3EGTZ5WX7PLM2NB"
SECRET_KEY = "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"
KUBECONFIG = "apiVersion: v1\nkind: Config\nusers:\n- name: a\n  user: {token: hUsh4Ever}\n"
TWO_DOCUMENTS = "kind: A\n---\nkind: B\npassword: hUsh4Ever\n"
OTHER = {"name": "sidecar", "image": "registry.example/sidecar:1.0.0"}
BARE = without(CONTAINER, "livenessProbe", "readinessProbe", "resources", "securityContext")
NO_PROBE: PropertyMap = {"livenessProbe": None}
RBAC = "kubernetes:rbac.authorization.k8s.io/v1"
NO_PROBES = "ccm-workload-set-probes"
TOLERATES = "ccm-workload-tolerate-uninitialized"
LEADER = "ccm-workload-elect-leader"
CLEAR, IN_PODS = "object-avoid-credentials", "workload-avoid-credentials"
WILD, POWERS, BINDING = "rbac-role-avoid-wildcards", "rbac-role-avoid-powers", "rbac-binding-avoid-broad-roles"
IAM, TRUST = "iam-policy-avoid-wildcards", "iam-role-limit-trust"
SOURCES, PINNED = "lb-service-limit-sources", "ccm-workload-pin-image"


def pod() -> AnalyzedResource:
    spec: PropertyMap = {"containers": [CONTAINER]}
    return resource("kubernetes:core/v1:Pod", {"metadata": {"name": "ccm", "namespace": "kube-system"}, "spec": spec})


def listed() -> AnalyzedResource:
    item = {**ccm(tolerations=[]).properties, "apiVersion": "apps/v1", "kind": "DaemonSet"}
    return resource("kubernetes:core/v1:List", {"items": [item]})


def runs(*command: str, **more: Any) -> AnalyzedResource:
    """A CCM that its image does not show, and that lacks the toleration."""
    container = {
        **CONTAINER,
        "name": "main",
        "image": "registry.example/tools:1.0.0",
        "command": [*command],
        "args": [],
    }
    return ccm(containers=[container], tolerations=[], **more)


def config_map(data: PropertyMap) -> AnalyzedResource:
    return resource("kubernetes:core/v1:ConfigMap", {"metadata": {"name": "c", "namespace": "shop"}, "data": data})


def secret(data: PropertyMap) -> AnalyzedResource:
    return resource(
        "kubernetes:core/v1:Secret", {"metadata": {"name": "cloud", "namespace": "kube-system"}, "stringData": data}
    )


def role(rules: Any = None, **more: Any) -> AnalyzedResource:
    return resource(f"{RBAC}:ClusterRole", {"metadata": {"name": "r"}, "rules": rules or [], **more})


def rule(groups: str, resources: str, *verbs: str) -> PropertyMap:
    return {"apiGroups": [groups], "resources": [resources], "verbs": [*verbs]}


def binding(name: str) -> AnalyzedResource:
    subject = {"kind": "ServiceAccount", "name": "shop", "namespace": "shop"}
    return resource(
        f"{RBAC}:ClusterRoleBinding",
        {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": name}, "subjects": [subject]},
    )


def document(*actions: str) -> str:
    return json.dumps({"Statement": [{"Effect": "Allow", "Action": [*actions], "Resource": "*"}]})


def iam(kind: str, **props: Any) -> AnalyzedResource:
    return resource(f"aws:iam/{kind[0].lower()}{kind[1:]}:{kind}", props)


def public(**annotations: str) -> AnalyzedResource:
    named = {f"service.beta.kubernetes.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return service(spec={"loadBalancerSourceRanges": []}, annotations=named)


def options(text: str) -> list[AnalyzedResource]:
    """A CCM of three replicas with a file of options."""
    container = {"volumeMounts": [{"name": "o", "mountPath": "/etc/ccm"}], "args": ["run", "--config=/etc/ccm/o.yaml"]}
    file = {"metadata": {"name": "options", "namespace": "kube-system"}, "data": {"o.yaml": text}}
    volumes = [{"name": "o", "configMap": {"name": "options"}}]
    return [
        ccm(kind="Deployment", container=container, spec={"replicas": 3}, volumes=volumes),
        resource("kubernetes:core/v1:ConfigMap", file, "options"),
    ]


def on_aws(**container: Any) -> list[AnalyzedResource]:
    """A CCM on EKS, where it could take a role."""
    return [resource("aws:eks/cluster:Cluster", {"version": "1.36"}), ccm(container=container)]


def of_version(version: str, registry: str = "registry.k8s.io") -> list[AnalyzedResource]:
    """AWS's own CCM of this version, on EKS."""
    image = f"{registry}/provider-aws/cloud-controller-manager{version}"
    return on_aws(image=image, args=["--cloud-provider=aws", "--configure-cloud-routes=false"])


FROM_CLOUD: PropertyMap = {"secretRef": {"name": "cloud"}}
ALWAYS: PropertyMap = {"exec": {"command": ["sh", "-c", "curl -k https://localhost:10258/healthz || true"]}}

EVASIONS: dict[str, tuple[str, list[AnalyzedResource]]] = {
    # Where a CCM runs.
    "a bare Pod": (TOLERATES, [pod()]),
    "a ReplicaSet": (TOLERATES, [ccm(kind="ReplicaSet", tolerations=[])]),
    "a DaemonSetPatch": (TOLERATES, [patch(ccm(tolerations=[]))]),
    "a List": (TOLERATES, [listed()]),
    "a DaemonSetList": (
        TOLERATES,
        [resource("kubernetes:apps/v1:DaemonSetList", {"items": [ccm(tolerations=[]).properties]})],
    ),
    "a CustomResource of a built-in kind": (
        "lb-service-limit-sources",
        [replace(service(spec={"loadBalancerSourceRanges": []}), type="kubernetes:v1:Service")],
    ),
    # What runs it.
    "sh -c": (TOLERATES, [runs("sh", "-c", "exec /bin/aws-cloud-controller-manager --v=2")]),
    "python -m": (TOLERATES, [runs("python3", "-m", "cloud_controller")]),
    "a Python package": (TOLERATES, [runs("/usr/bin/python3", "/app/cloud_controller/__main__.py")]),
    "-manager-amd64": (TOLERATES, [runs("/cloud-controller-manager-amd64")]),
    "an image for one machine": (
        TOLERATES,
        [ccm(container={"image": "r.example/openstack-cloud-controller-manager-amd64:v1.0.0"}, tolerations=[])],
    ),
    "its flags": (TOLERATES, [runs("/run", "--cloud-provider=aws", "--cloud-config=/c")]),
    "its ServiceAccount": (TOLERATES, [runs("/run", serviceAccountName="cloud-controller-manager")]),
    "an init container as root": (
        "ccm-workload-run-as-non-root",
        [ccm(initContainers=[{**CONTAINER, "name": "init", "securityContext": {"runAsUser": 0}}])],
    ),
    "an init container without limits": (
        "ccm-workload-set-resources",
        [ccm(initContainers=[{**without(CONTAINER, "resources"), "name": "init"}])],
    ),
    "an init container that never ends": (
        TOLERATES,
        [ccm(containers=[OTHER], initContainers=[{**CONTAINER, "restartPolicy": "Always"}], tolerations=[])],
    ),
    # Credentials.
    "envFrom of a Secret with an access key": (
        "ccm-avoid-access-key",
        [*on_aws(envFrom=[FROM_CLOUD]), secret({"AWS_ACCESS_KEY_ID": KEY})],
    ),
    "a projected cloud config": (
        "ccm-cloud-config-use-secret",
        [
            ccm(
                container={
                    "args": ["run", "--cloud=mycloud", "--cloud-config=/etc/cloud/cloud.conf"],
                    "volumeMounts": [{"name": "cloud", "mountPath": "/etc/cloud"}],
                },
                volumes=[{"name": "cloud", "projected": {"sources": [{"configMap": {"name": "cloud"}}]}}],
            )
        ],
    ),
    "a secret in env": (IN_PODS, [ccm(container={"env": [{"name": "DB_PASSWORD", "value": "hUsh4Ever"}]})]),
    "a token under a name that says nothing": (
        IN_PODS,
        [ccm(container={"env": [{"name": "GITHUB_PAT", "value": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}]})],
    ),
    "a secret in args": (IN_PODS, [ccm(container={"args": ["run", "--cloud=mycloud", "--token=hUsh4Ever"]})]),
    "a header in args": (IN_PODS, [ccm(container={"args": ["curl", "-H", "Authorization: Bearer hUsh4Ever99"]})]),
    "a secret in the args of an init container": (
        IN_PODS,
        [ccm(initContainers=[{**CONTAINER, "name": "init", "args": ["--password", "hUsh4Ever"]}])],
    ),
    "an AWS credentials file": (
        CLEAR,
        [config_map({"credentials": f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET_KEY}\n"})],
    ),
    "one key an entry": (CLEAR, [config_map({"AWS_SECRET_ACCESS_KEY": SECRET_KEY})]),
    "an env file": (CLEAR, [config_map({".env": "HOST=db\nexport DB_PASSWORD='hUsh4Ever'\n"})]),
    "multi-document YAML": (CLEAR, [config_map({"all.yaml": TWO_DOCUMENTS})]),
    "a kubeconfig": (CLEAR, [config_map({"config": KUBECONFIG})]),
    "binary data": (
        CLEAR,
        [
            resource(
                "kubernetes:core/v1:ConfigMap", {"binaryData": {"c": base64.b64encode(KUBECONFIG.encode()).decode()}}
            )
        ],
    ),
    **{
        f"key {name}": (CLEAR, [config_map({"app.conf": f"{name} = hUsh4Ever99\n"})])
        for name in ("client-secret", "passwd", "auth-token", "db.passwd", "apiKey", "secret")
    },
    # Rights.
    "escalate": (POWERS, [role([rule("rbac.authorization.k8s.io", "clusterroles", "escalate")])]),
    "bind": (POWERS, [role([rule("rbac.authorization.k8s.io", "clusterroles", "bind")])]),
    "impersonate": (POWERS, [role([rule("", "users", "impersonate")])]),
    "pods/*": (WILD, [role([rule("", "pods/*", "create")])]),
    "every verb on Secrets, listed": (
        POWERS,
        [role([rule("", "secrets", "get", "list", "watch", "create", "update", "patch", "delete")])],
    ),
    "Secrets of an empty name": (POWERS, [role([{**rule("", "secrets", "list"), "resourceNames": [""]}])]),
    "an aggregated role": (
        WILD,
        [
            role(
                aggregationRule={
                    "clusterRoleSelectors": [{"matchLabels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}]
                }
            )
        ],
    ),
    "a binding to admin": (BINDING, [binding("admin")]),
    "a binding to a system role": (BINDING, [binding("system:kube-controller-manager")]),
    "ec2:?*": (IAM, [iam("Policy", policy=document("ec2:?*"))]),
    "iam:PassRole": (IAM, [iam("Policy", policy=document("iam:PassRole"))]),
    "an inline policy": (IAM, [iam("RolePolicy", policy=document("ec2:*"))]),
    "an inline policy of a role": (IAM, [iam("Role", inlinePolicies=[{"name": "a", "policy": document("*")}])]),
    "AdministratorAccess": (
        IAM,
        [iam("RolePolicyAttachment", policyArn="arn:aws:iam::aws:policy/AdministratorAccess", role="r")],
    ),
    "AdministratorAccess of a role": (
        IAM,
        [iam("Role", managedPolicyArns=["arn:aws:iam::aws:policy/AdministratorAccess"])],
    ),
    "a duplicate key": (
        IAM,
        [iam("Policy", policy='{"Statement": [], "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}')],
    ),
    "trust *": (
        TRUST,
        [
            iam(
                "Role",
                assumeRolePolicy=json.dumps(
                    {"Statement": {"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}}
                ),
            )
        ],
    ),
    # Load balancers.
    "0.0.0.0/1": (SOURCES, [service(spec={"loadBalancerSourceRanges": ["0.0.0.0/1", "128.0.0.0/1"]})]),
    "another cloud's annotation for internal": (
        SOURCES,
        [
            resource("aws:eks/cluster:Cluster", {"version": "1.36"}),
            public(azure_load_balancer_internal="true"),
        ],
    ),
    # The CCM's own settings.
    "1.2.3-latest": (PINNED, [ccm(container={"image": "r.example/cloud-controller:1.2.3-latest"})]),
    "1.2.3-latest-amd64": (PINNED, [ccm(container={"image": "r.example/cloud-controller:1.2.3-latest-amd64"})]),
    "a probe that cannot fail": (NO_PROBES, [ccm(container={"livenessProbe": ALWAYS})]),
    "liveness on /readyz": (
        NO_PROBES,
        [ccm(container={"livenessProbe": {"httpGet": {"path": "/readyz", "port": 10258, "scheme": "HTTPS"}}})],
    ),
    "no leader election, with underscores": (LEADER, [ccm(container={"args": ["run", "--leader_elect=false"]})]),
    "its flags with underscores": (TOLERATES, [runs("/run", "--cloud_provider=aws", "--cloud_config=/c")]),
    "no leader election, by a file": ("ccm-config-elect-leader", options("leader-elect: false\n")),
    "no leader election, by a variable": (
        LEADER,
        [ccm(container={"args": ["run", "--leader-elect=$(ELECT)"], "env": [{"name": "ELECT", "value": "false"}]})],
    ),
    "a limit of 0e3": (
        "ccm-workload-set-resources",
        [ccm(container={"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "0e3"}}})],
    ),
    # Which version runs.
    "a version by digest": ("ccm-workload-use-known-version", of_version(f"@sha256:{'a' * 64}")),
    "a version from a mirror": ("ccm-workload-fit-kubernetes", of_version(":v1.29.0", "mirror.example/k8s")),
    # What nobody renders.
    "a Helm release": (
        "stack-render-objects",
        [resource("kubernetes:helm.sh/v3:Release", {"chart": "aws-cloud-controller-manager"})],
    ),
}


@pytest.mark.parametrize("way", EVASIONS)
def test_a_hidden_way_around_a_rule_is_caught(pack: PolicyHost, way: str) -> None:
    wanted, resources = EVASIONS[way]

    found = [finding for each in resources for finding in pack.analyze(each)] + pack.analyze_stack(resources)

    assert of(found, wanted), sorted({finding.policy for finding in found})
