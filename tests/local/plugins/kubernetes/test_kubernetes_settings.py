"""The provider's options, and its behaviour without an API server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from local.plugins.kubernetes import KubernetesProvider
from local.plugins.kubernetes.settings import parse_settings
from local.plugins.provider import CreateRequest, DeleteRequest, ProviderError, UpdateRequest
from local.plugins.values import UNKNOWN, PropertyMap, Secret, Value

# A closed port: the discard port of an address that no site uses.
DEAD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "l", "user": "u"}}],
        "clusters": [{"name": "l", "cluster": {"server": "https://127.15.255.254:9"}}],
        "users": [{"name": "u", "user": {"token": "hush"}}],
    }
)
URN = "urn:pulumi:dev::sample::kubernetes:core/v1:ConfigMap::a"
INPUTS: PropertyMap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


def silent(_line: str) -> None:
    pass


def creation(*, preview: bool) -> CreateRequest:
    return CreateRequest(urn=URN, inputs=INPUTS, preview=preview, timeout=0, report=silent)


def test_options_come_as_text_or_as_values() -> None:
    settings = parse_settings(
        {
            "kubeconfig": Secret(DEAD),
            "namespace": "team",
            "enableSecretMutable": "true",
            "enablePatchForce": True,
            "enableServerSideApply": "true",
            "version": "4.34.2",
            "__internal": {},
        }
    )

    assert (settings.kubeconfig, settings.namespace) == (DEAD, "team")
    assert (settings.secret_mutable, settings.patch_force, settings.config_map_mutable) == (True, True, False)
    assert "hush" not in repr(settings)


def test_a_kubeconfig_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("text")

    assert parse_settings({"kubeconfig": str(tmp_path / "kubeconfig")}).kubeconfig == "text"


def test_options_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")

    assert parse_settings({"kubeconfig": DEAD}).delete_unreachable


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "needs `kubeconfig`"),
        ({"kubeconfig": "/no/such/file"}, "No such file"),
        ({"kubeconfig": DEAD, "renderYamlToDirectory": "out"}, "renderYamlToDirectory is not supported"),
        ({"kubeconfig": DEAD, "enableServerSideApply": "false"}, "enableServerSideApply"),
        ({"kubeconfig": DEAD, "enablePatchForce": "maybe"}, "enablePatchForce must be true or false"),
        ({"kubeconfig": DEAD, "context": 7}, "context must be a string"),
        ({"kubeconfig": DEAD, "context": "other"}, "kubeconfig: "),
        ({"kubeconfig": Secret("a:\n  - hush: [")}, "kubeconfig: "),
    ],
)
def test_invalid_options_are_refused_by_name(config: PropertyMap, said: str) -> None:
    with pytest.raises(ProviderError, match=said) as caught:
        KubernetesProvider(config)

    assert "hush" not in str(caught.value)


def test_objects_of_a_future_cluster_are_previewed_from_the_inputs() -> None:
    provider = KubernetesProvider({"kubeconfig": UNKNOWN})

    made = provider.create(creation(preview=True))
    changed = provider.update(
        UpdateRequest(
            urn=URN,
            id="default/a",
            old_inputs=INPUTS,
            old_outputs=INPUTS,
            news=INPUTS,
            ignore_changes=[],
            preview=True,
            timeout=0,
            report=silent,
        )
    )

    assert (made.id, made.outputs, changed) == ("", INPUTS, INPUTS)
    with pytest.raises(ProviderError, match="not known yet"):
        provider.create(creation(preview=False))


def test_an_unreachable_api_server_is_one_clear_error_in_a_preview() -> None:
    provider = KubernetesProvider({"kubeconfig": DEAD})

    said = []
    for _ in range(2):
        with pytest.raises(ProviderError, match=r"API server is unreachable.*127\.15\.255\.254") as caught:
            provider.create(creation(preview=True))
        said.append(str(caught.value))

    assert said[0] == said[1]
    assert "hush" not in said[0]


def test_objects_of_an_unreachable_cluster_are_not_forgotten() -> None:
    provider = KubernetesProvider({"kubeconfig": DEAD})

    with pytest.raises(ProviderError, match="unreachable"):
        provider.read(URN, "default/a", INPUTS, INPUTS)


def test_objects_of_an_unreachable_cluster_count_as_gone_with_delete_unreachable() -> None:
    provider = KubernetesProvider({"kubeconfig": DEAD, "deleteUnreachable": "true"})

    provider.delete(DeleteRequest(urn=URN, id="default/a", inputs=INPUTS, outputs=INPUTS, timeout=1, report=silent))
    assert provider.read(URN, "default/a", INPUTS, INPUTS).id is None


@pytest.mark.parametrize(
    ("kubeconfig", "replaced"),
    [
        (DEAD, False),
        (DEAD.replace("hush", "rotated"), False),
        (DEAD.replace("127.15.255.254", "127.15.255.253"), True),
        (UNKNOWN, False),
    ],
)
def test_another_server_is_another_cluster_but_other_credentials_are_not(kubeconfig: Value, replaced: bool) -> None:
    provider = KubernetesProvider({"kubeconfig": Secret(DEAD)})

    assert provider.replaced_by({"kubeconfig": kubeconfig}) == (("kubeconfig",) if replaced else ())


@pytest.mark.parametrize(
    ("old", "new", "replaced"),
    [("c-1", "c-1", ()), ("c-1", "c-2", ("clusterIdentifier",)), (None, "c-1", ("clusterIdentifier",))],
)
def test_a_cluster_identifier_alone_says_which_cluster_it_is(
    old: str | None, new: str, replaced: tuple[str, ...]
) -> None:
    moved = DEAD.replace("127.15.255.254", "127.15.255.253")
    provider = KubernetesProvider({"kubeconfig": Secret(DEAD), "clusterIdentifier": old})

    assert provider.replaced_by({"kubeconfig": Secret(moved), "clusterIdentifier": new}) == replaced
