"""The section `existing` of a stack file: a cluster that is there already, which the stack reads and never changes."""

from __future__ import annotations

import re
from typing import Annotated

import yaml
from pydantic import Field, SecretStr

from .config_values import (
    MOST_MACHINES,
    NAMESPACE,
    Cidr,
    ConfigError,
    NotEmpty,
    Section,
    line,
    matching,
    pattern_of,
)
from .placeholder import PLACEHOLDER

NEW, EXISTING = "new", "existing"
"""The values of the key `cluster`."""
KUBECONFIG = "kubeconfig"
"""The key of the existing cluster's kubeconfig, beside the section because it is secret."""
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

NodeName = Annotated[
    NotEmpty,
    matching(_NODE_NAME, "the name of a node, as `kubectl get nodes` prints it"),
    Field(json_schema_extra=pattern_of(_NODE_NAME.pattern)),
]


class ExistingConfig(Section):
    """The identifiers of a cluster that another program, or a person, made."""

    cluster_id: NotEmpty = Field(description="The cluster's id in the cloud, which the tags of its machines carry.")
    network_id: NotEmpty = Field(description="The id of the network that its machines are in.")
    pod_cidr: Cidr = Field(
        description="The range of the pods; where pods have addresses of the network, the network's range."
    )
    control_plane_nodes: int = Field(
        default=0,
        strict=True,
        ge=0,
        le=MOST_MACHINES,
        description="The number of control-plane nodes, each of which runs a cloud controller manager. 0: the control"
        " plane has no nodes, and two run on workers.",
    )
    machines: list[NodeName] = Field(
        default_factory=list, description="The machines that `up` waits for, by the names of their nodes."
    )


def check_existing(existing: ExistingConfig | None, kubeconfig: SecretStr | None) -> None:
    """Raise ConfigError unless the stack has a valid section and the cluster's kubeconfig."""
    if existing is None:
        needed = ", ".join(str(field.alias) for field in ExistingConfig.model_fields.values() if field.is_required())
        raise ConfigError(f"{NAMESPACE}:existing is missing: an existing cluster needs {{{needed}}}")
    names = existing.machines
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(line(f"existing.machines[{index}]", name, "duplicate name; allowed: unique names"))
    if kubeconfig is None:
        how = f"encrypt it with `pulumi config set --secret {KUBECONFIG}`"
        raise ConfigError(f"{NAMESPACE}:{KUBECONFIG} is missing: an existing cluster needs its kubeconfig; {how}")
    if not is_kubeconfig(kubeconfig.get_secret_value()):
        why = "allowed: the text of a kubeconfig (not its path), with clusters, contexts and users"
        raise ConfigError(line(KUBECONFIG, "[secret]", why))


def check_id(key: str, value: str, prefix: str) -> None:
    """Raise ConfigError for an id of the section `existing` that does not begin as the cloud's ids do."""
    if not re.fullmatch(rf"{prefix}-[A-Za-z0-9]+", value):
        raise ConfigError(line(f"existing.{key}", value, f"not an id of the cloud; allowed: {prefix}-…"))


def is_kubeconfig(text: str) -> bool:
    """Whether the text has the parts of a kubeconfig; a placeholder passes, because nothing is known about it."""
    if text == PLACEHOLDER:
        return True
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return False
    return isinstance(found, dict) and all(found.get(key) for key in ("clusters", "contexts", "users"))
