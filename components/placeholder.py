"""Runs without the stack's secrets: the value in their place, and the error of a provider that needs one."""

from __future__ import annotations

PLACEHOLDER = "[placeholder]"
"""The stand-in for every secret of a preview that is made without the stack's passphrase (`local.pulumi.rehearsal`)."""


class PlaceholderSecrets(Exception):
    """This run has placeholders instead of the stack's secrets, so it cannot call the cloud."""
