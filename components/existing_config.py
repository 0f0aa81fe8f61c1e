"""The section `existing` of a stack file: a cluster that is there already, which the stack reads and never changes."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import yaml
from pydantic import Field
from pydantic.alias_generators import to_camel

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

if TYPE_CHECKING:
    from .stack_model import CloudSection, StackConfig

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


def check_shape(stack: StackConfig, section: CloudSection) -> None:
    """Raise ConfigError unless the stack has what its key `cluster` needs, and nothing of the other kind."""
    if stack.cluster == EXISTING:
        _refuse(stack, section, ("node_pools",), section.of_new)
        _check_existing(stack)
        section.check_existing(stack)
        return
    _refuse(stack, section, ("existing", KUBECONFIG), section.of_existing)
    if "node_pools" not in stack.model_fields_set:
        raise ConfigError(f"{NAMESPACE}:nodePools is missing: a new cluster needs machines")
    if not stack.node_pools:
        raise ConfigError(line("nodePools", [], "allowed: not empty, because a new cluster needs machines"))


def _refuse(stack: StackConfig, section: CloudSection, keys: Collection[str], of_cloud: Collection[str]) -> None:
    other = NEW if stack.cluster == EXISTING else EXISTING
    for model, place, names in ((stack, "", keys), (section, f"{stack.cloud}.", of_cloud)):
        for name in names:
            # Pulumi sets a declared key to its default.
            if name in model.model_fields_set and getattr(model, name) not in (None, []):
                why = f"is only for `cluster: {other}`; with `cluster: {stack.cluster}` remove the key"
                raise ConfigError(f"{NAMESPACE}:{place}{to_camel(name)} {why}")


def _check_existing(stack: StackConfig) -> None:
    if stack.existing is None:
        needed = ", ".join(str(field.alias) for field in ExistingConfig.model_fields.values() if field.is_required())
        raise ConfigError(f"{NAMESPACE}:existing is missing: an existing cluster needs {{{needed}}}")
    names = stack.existing.machines
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(line(f"existing.machines[{index}]", name, "duplicate name; allowed: unique names"))
    if stack.kubeconfig is None:
        how = f"encrypt it with `pulumi config set --secret {KUBECONFIG}`"
        raise ConfigError(f"{NAMESPACE}:{KUBECONFIG} is missing: an existing cluster needs its kubeconfig; {how}")
    if not is_kubeconfig(stack.kubeconfig.get_secret_value()):
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
