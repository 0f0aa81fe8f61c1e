"""Runs without the stack's secrets: what stands in their place, and what a provider then says."""

from __future__ import annotations

PLACEHOLDER = "[placeholder]"
"""The engine's stand-in for every secret of a preview made without the stack's passphrase (`--placeholder-secrets`)."""


class PlaceholderSecrets(Exception):
    """This run has placeholders instead of the stack's secrets, so the cloud cannot be asked."""
