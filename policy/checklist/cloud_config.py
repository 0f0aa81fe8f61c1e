"""Rule: a cloud controller manager reads its cloud config, which holds credentials, from a Secret, not a ConfigMap."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from policy.cloud_configs import FLAG
from policy.command_lines import flag
from policy.objects import dig, items
from policy.references import of_file, of_volume
from policy.rules import HIGH, MANDATORY, ResourceRule
from policy.subjects import CONFIG_MAP, SECRET, Subject
from policy.unknowns import Problem, first_known
from policy.workloads import IMAGES, Container, containers, of_ccm, pod

_CLOUD_NAME = re.compile(r"cloud[-_.]?(conf|provider)", re.I)


def problems(subject: Subject) -> Iterator[Problem]:
    """CCM workloads that read their cloud config from a ConfigMap."""
    return of_ccm(subject, [partial(_problem, subject)])


def _problem(subject: Subject) -> str | None:
    spec = pod(subject)
    volumes = {str(dig(volume, "name")): [*of_volume(volume)] for volume in items(dig(spec, "volumes"))}
    shared = {
        name: maps[0].name
        for name, read in volumes.items()
        if (maps := [each for each in read if each.kind == CONFIG_MAP]) and len(maps) == len(read)
    }
    if not any(each.kind == CONFIG_MAP for read in volumes.values() for each in read):
        return None
    return first_known(partial(_in_container, spec, container, shared) for container in containers(subject))


def _in_container(pod: Mapping[str, Any], container: Container, shared: Mapping[str, str]) -> str | None:
    """`shared`: the volumes that show a ConfigMap and nothing else, with its name."""
    spec = container()
    path = flag(spec, FLAG)
    sources = of_file(pod, spec, path) if path else []
    named = {shared.get(str(dig(mount, "name")), "") for mount in items(dig(spec, "volumeMounts"))}
    found = [each.name for each in sources if each.kind == CONFIG_MAP]
    if any(each.kind == SECRET for each in sources):
        # A ConfigMap projected beside it is assumed to hold certificates.
        found = []
    found += sorted(name for name in named if _CLOUD_NAME.search(name))
    return f"container {dig(spec, 'name')} reads its cloud config from the ConfigMap {found[0]}" if found else None


CLOUD_CONFIG_IN_SECRET = ResourceRule(
    "ccm-cloud-config-use-secret",
    problems,
    why=(
        "The cloud config holds the cloud's credentials and belongs in a Secret. Far more identities can read "
        "ConfigMaps, which are not encrypted at rest and are shown in previews."
    ),
    level=MANDATORY,
    settings={"images": IMAGES},
    title="Cloud config in a Secret",
    severity=HIGH,
    lines=["11.1.1"],
    sections="8.1, corrected",
    judges=(
        "A CCM reads its cloud config from a Secret: the file of `--cloud-config` comes from no mounted or projected "
        "ConfigMap (one that is projected beside a Secret, without a list of items, is assumed to hold certificates), "
        "and no ConfigMap with the name of a cloud config (`cloud-config`, `cloud-provider`) is mounted. "
        "`object-avoid-credentials` judges what is in the stack's ConfigMaps."
    ),
    unseen="A cloud config on the node (`hostPath`), in the image, or made by an init container.",
    tags=["credentials"],
    remedy=(
        "Put the file into a Secret (stringData, from a secret of the stack's config), mount that, delete the "
        "ConfigMap and replace the credentials that it held."
    ),
    url="https://kubernetes.io/docs/concepts/configuration/secret/",
)
