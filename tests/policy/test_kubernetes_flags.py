"""How texts are read for the flags of Kubernetes' components."""

from __future__ import annotations

import base64
import gzip

import pytest

from policy.kubernetes_flags import API_SERVER, CONTROLLER_MANAGER, KUBELET, read


@pytest.mark.parametrize(
    "text",
    [
        "kube-controller-manager --cloud-provider=external",
        "kube-controller-manager --v=2 --cloud-provider external",
        "- kube-controller-manager\n- --cloud-provider=external\n",
        '["kube-controller-manager","--cloud-provider=external"]',
        "controllerManager:\n  extraArgs:\n    cloud-provider: external\n",
        'controllerManager: {extraArgs: {"cloud-provider": "external"}}',
        "controllerManager:\n  extraArgs:\n  - name: cloud-provider\n    value: external\n",
        "controllerManager:\n  extraArgs:\n  - {name: cloud-provider, value: 'external'}\n",
        "PROVIDER=external\ncat <<YAML\ncontrollerManager:\n  extraArgs:\n    cloud-provider: ${PROVIDER}\nYAML\n",
        "printf 'controllerManager:\\n  extraArgs:\\n    cloud-provider: external\\n'",
        "kube-controller-manager \\\n  --cloud-provider=external",
    ],
    ids=["=", "word", "manifest", "json", "map", "flow", "list", "flow list", "variable", "printf", "continued"],
)
def test_a_flag_is_found_however_it_is_written(text: str) -> None:
    assert read("user data", text).value(CONTROLLER_MANAGER, "cloud-provider") == "external"


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "compressed"])
def test_encoded_files_within_a_text_are_read(compress: bool) -> None:
    manifest = b"spec:\n  containers:\n  - command: [kube-apiserver, --cloud-provider=external, --etcd-servers=x]\n"
    content = base64.b64encode(gzip.compress(manifest) if compress else manifest).decode()

    flags = read("user data", f"#cloud-config\nwrite_files:\n- encoding: b64\n  content: {content}\n")

    assert flags.value(API_SERVER, "cloud-provider") == "external"


def test_a_comment_is_no_flag() -> None:
    assert not read("user data", "kubelet\n  # --cloud-provider=external\n").has(KUBELET, "cloud-provider")


def test_the_flags_of_one_component_are_not_anothers() -> None:
    flags = read(
        "user data", "apiServer:\n  extraArgs: {}\ncontrollerManager:\n  extraArgs: {cloud-provider: external}\n"
    )

    assert not flags.has(API_SERVER, "cloud-provider")


def test_a_value_from_elsewhere_is_a_flag_whose_value_is_not_known() -> None:
    flags = read("user data", "kubelet --cloud-provider=$PROVIDER")

    assert flags.has(KUBELET, "cloud-provider")
    assert flags.value(KUBELET, "cloud-provider") is None
