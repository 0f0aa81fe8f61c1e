"""The section `tiny` of a stack file."""

from __future__ import annotations

from pydantic import Field

from components.stack_model import CloudSection


class TinyConfig(CloudSection):
    """What a stack on tinycloud says of it."""

    kubeconfig: str = Field(description="The kubeconfig of the cluster, which is there already.")
    machines: dict[str, str] = Field(default_factory=dict, description="Addresses by the names of nodes.")
