"""The config of a stack on a cluster that is there already: what it takes, and what is said about each mistake."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from components.stack_config import NAMESPACE, ConfigError, Controller, Executor, StackConfig, parse
from components.stack_schema import schema

TOKEN = "a-token-that-nobody-may-see"
KUBECONFIG = yaml.safe_dump({"clusters": [{"name": "c"}], "contexts": [{"name": "c"}], "users": [{"name": TOKEN}]})
EXISTING = {"clusterId": "c-0123456789ab", "networkId": "net-0123456789ab", "podCidr": "10.20.0.0/16"}
POOL = {"name": "cp", "role": "control-plane", "count": 1, "type": "m1.small", "zones": ["zone-a"]}
SECRETS = {"kubeconfig", "mycloudToken"}


def given(**more: Any) -> dict[str, Any]:
    """A stack on an existing cluster; None takes a key out."""
    config = {
        "cloud": "mycloud",
        "cluster": "existing",
        "clusterName": "shop",
        "existing": EXISTING,
        "kubeconfig": KUBECONFIG,
        "mycloud": {"endpoint": "http://127.16.0.1:7070"},
        "mycloudToken": TOKEN,
        **more,
    }
    return {key: value for key, value in config.items() if value is not None}


def parsed(**more: Any) -> StackConfig:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given(**more).items()}
    return parse(texts, SECRETS)


def test_a_stack_on_an_existing_cluster_has_identifiers_in_place_of_pools() -> None:
    config = parsed(existing={**EXISTING, "machines": ["a", "b"]})

    assert config.existing is not None
    assert config.existing.machines == ["a", "b"]
    assert config.node_pools == []
    assert config.control_plane_machines == 0
    assert config.run_by(Executor.DAEMON) == list(Controller)


def test_pulumis_default_for_node_pools_counts_as_not_given() -> None:
    assert parsed(nodePools=[]).node_pools == []


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"cluster": "exsting"}, "cluster is \"exsting\": did you mean 'existing'? allowed: new, existing"),
        ({"nodePools": [POOL]}, "nodePools is only for `cluster: new`; with `cluster: existing` remove the key"),
        ({"existing": None}, "existing is missing: an existing cluster needs {clusterId, networkId, podCidr}"),
        ({"existing": {}}, "existing.clusterId is missing: The cluster's id in the cloud"),
        (
            {"existing": {**EXISTING, "clusterID": "x"}},
            "existing.clusterID is not a known key; did you mean 'clusterId'?",
        ),
        ({"existing": {**EXISTING, "clusterId": "shop"}}, 'existing.clusterId is "shop": not an id of the cloud'),
        (
            {"existing": {**EXISTING, "networkId": "vpc-1"}},
            'networkId is "vpc-1": not an id of the cloud; allowed: net-',
        ),
        ({"existing": {**EXISTING, "podCidr": "10.20.0.1/16"}}, "existing.podCidr is"),
        ({"existing": {**EXISTING, "controlPlaneNodes": -1}}, "controlPlaneNodes is -1: allowed: a whole number"),
        ({"existing": {**EXISTING, "machines": ["A b"]}}, 'existing.machines[0] is "A b": allowed: the name of a node'),
        ({"existing": {**EXISTING, "machines": ["a", "a"]}}, 'existing.machines[1] is "a": duplicate name'),
        ({"existing": "c-1"}, "existing is text: allowed: a map of clusterId, networkId"),
        ({"kubeconfig": None}, "kubeconfig is missing: an existing cluster needs its kubeconfig"),
        (
            {"kubeconfig": "~/.kube/config"},
            'kubeconfig is "[secret]": allowed: the text of a kubeconfig (not its path)',
        ),
        (
            {"cluster": "new", "nodePools": [POOL]},
            "existing is only for `cluster: existing`; with `cluster: new` remove",
        ),
        (
            {"cluster": None, "existing": None, "nodePools": [POOL]},
            "kubeconfig is only for `cluster: existing`; with `cluster: new` remove",
        ),
    ],
)
def test_a_mistake_is_one_line_with_key_and_what_is_allowed(more: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(**more)

    assert f"{NAMESPACE}:{line}" in str(caught.value) or line in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_kubeconfig_in_plain_text_is_refused_and_not_shown() -> None:
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in given().items()}

    with pytest.raises(ConfigError) as caught:
        parse(texts, SECRETS - {"kubeconfig"})

    assert "kubeconfig is in plain text; encrypt it with `pulumi config set --secret kubeconfig`" in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_preview_without_the_stacks_secrets_takes_their_placeholders() -> None:
    assert parsed(kubeconfig="[placeholder]").secret("kubeconfig") == "[placeholder]"


@pytest.mark.parametrize(
    "more",
    [{"nodePools": [POOL]}, {"cluster": "new"}, {"cluster": None, "nodePools": [POOL]}, {"cluster": "old"}],
)
def test_an_editor_marks_keys_of_the_other_kind(more: dict[str, Any]) -> None:
    def in_a_file(values: dict[str, Any]) -> dict[str, Any]:
        encrypted = {key: {"secure": "v1:…"} for key in SECRETS & values.keys()}
        return {"config": {f"{NAMESPACE}:{key}": value for key, value in {**values, **encrypted}.items()}}

    jsonschema.validate(in_a_file(given()), schema())

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(in_a_file(given(**more)), schema())
