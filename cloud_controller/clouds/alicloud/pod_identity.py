"""How the CCM's pods assume a RAM role: RRSA, by a token of their ServiceAccount."""

from __future__ import annotations

from cloud_controller.clouds.descriptor import PodIdentity, Text

AUDIENCE = "sts.aliyuncs.com"
"""The audience that ACK gives the tokens, and the one of an identity provider in RAM."""
