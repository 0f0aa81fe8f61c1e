"""mycloud's machines. The load balancers of Services are counted with every cloud's."""

from __future__ import annotations

from typing import Final

from policy.clouds.interface import Billed, Meaning

_TYPE = "pulumi-python:dynamic/mycloud:"

MEANING: Final = Meaning(billed={f"{_TYPE}Machine": Billed("node", ("type",))})
