"""mycloud's machines. The load balancers of Services are counted with every cloud's."""

from __future__ import annotations

from typing import Final

from cloud_stacks.clouds import Billed, StackCloud

_TYPE = "pulumi-python:dynamic/mycloud:"

CLOUD: Final = StackCloud(name="mycloud", billed={f"{_TYPE}Machine": Billed("node", ("type",))})
