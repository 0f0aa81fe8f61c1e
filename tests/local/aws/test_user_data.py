"""The kubelet's flags in user data, in the forms in which machines get them."""

from __future__ import annotations

import base64
import gzip

import pytest

from components.clouds.aws.user_data import eks_node
from local.aws.user_data import KubeletFlags, decoded, kubelet_flags

BOOTSTRAP = """#!/bin/bash
set -o xtrace
FLAGS='--node-labels=pool=w,example.com/a=b --register-with-taints=gpu=yes:NoSchedule,spot:NoExecute'
/etc/eks/bootstrap.sh c1 --kubelet-extra-args "$FLAGS"
"""
SYSTEMD = """[Service]
Environment="KUBELET_EXTRA_ARGS=--cloud-provider=external --provider-id=aws:///${ZONE}/${ID} --node-labels a=b"
"""


def test_kubelet_flags_are_read_from_the_arguments_of_eks_older_images() -> None:
    assert kubelet_flags(BOOTSTRAP) == KubeletFlags(
        labels={"pool": "w", "example.com/a": "b"},
        taints=[
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"key": "spot", "effect": "NoExecute"},
        ],
    )


def test_kubelet_flags_are_read_from_a_custom_kubelet_command() -> None:
    assert kubelet_flags(SYSTEMD) == KubeletFlags(labels={"a": "b"}, names_provider_id=True)


def test_kubelet_flags_are_read_from_the_settings_for_eks_image() -> None:
    join = {"endpoint": "https://127.16.1.1:6443", "certificate_authority": "QUJD", "service_cidr": "10.18.0.0/18"}

    flags = kubelet_flags(eks_node("c1", join, {"cloud-controller/pool": "workers", "a": "b"}))

    assert flags == KubeletFlags(labels={"cloud-controller/pool": "workers", "a": "b"}, names_provider_id=True)


@pytest.mark.parametrize("text", ["", "#!/bin/sh\ntrue\n"])
def test_user_data_without_flags_set_nothing(text: str) -> None:
    assert kubelet_flags(text) == KubeletFlags()


def test_compressed_user_data_set_nothing_and_raise_nothing() -> None:
    kept = base64.b64encode(gzip.compress(BOOTSTRAP.encode())).decode()

    assert kubelet_flags(decoded(kept)) == KubeletFlags()
