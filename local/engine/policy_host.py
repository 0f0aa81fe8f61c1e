"""Runs a policy pack: the real analyzer server in a process of its own, asked what it thinks of each resource.

The process is `python -u -m pulumi.policy ENGINE_ADDRESS PACK_FOLDER`, started as the CLI starts it: in the pack's
folder, with the interpreter of the virtualenv that PulumiPolicy.yaml names. A rule that cannot run because a value is
unknown is reported as not evaluated, which is neither a pass nor a violation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from local.engine.values import PropertyMap

Level = Literal["advisory", "mandatory", "remediate", "disabled", "not-evaluated"]


class PolicyError(Exception):
    """The pack could not be started, configured or asked; the message is for a person."""


@dataclass(frozen=True, slots=True)
class AnalyzedOptions:
    """A resource's options, as far as the analyzer protocol carries them. Timeouts are in seconds, 0: not set."""

    protect: bool = False
    ignore_changes: tuple[str, ...] = ()
    delete_before_replace: bool | None = None
    additional_secret_outputs: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    create_timeout: float = 0
    update_timeout: float = 0
    delete_timeout: float = 0


@dataclass(frozen=True, slots=True)
class AnalyzedProvider:
    """The provider of an analyzed resource; `properties` are its inputs."""

    type: str
    urn: str
    name: str
    properties: PropertyMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnalyzedResource:
    """A resource as the rules see it: inputs before the step, outputs for the stack's rules."""

    type: str
    urn: str
    name: str
    properties: PropertyMap
    options: AnalyzedOptions = AnalyzedOptions()
    provider: AnalyzedProvider | None = None
    parent: str = ""
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule says. `urn` is never empty: a stack rule's finding without one is about the stack."""

    policy: str
    pack: str
    version: str
    level: Level
    message: str
    urn: str
    description: str
    severity: str = ""


class PolicyHost:
    """One pack, started and configured. Calls are safe from several threads; the server answers a few at once."""

    name: str
    version: str
    """PulumiPolicy.yaml's version; the server itself does not know it."""

    @classmethod
    def start(
        cls,
        pack_dir: Path,
        *,
        engine_address: str,
        project: str,
        stack: str,
        organization: str = "organization",
        dry_run: bool,
        config: Mapping[str, str],
        config_secret_keys: Sequence[str] = (),
        policy_config: Mapping[str, Any] | None = None,
    ) -> PolicyHost:
        """Start the pack's server, configure it, and return when it answers.

        `config` holds plain texts by "namespace:key". `policy_config` is the content of --policy-pack-config.
        Raises PolicyError: no pack there, interpreter missing, crash at start (with its last lines), bad configuration.
        """
        raise NotImplementedError

    def remediate(self, resource: AnalyzedResource) -> tuple[PropertyMap, list[Finding]]:
        """The inputs as the pack's remediations leave them, and a finding for each remediation that did something."""
        raise NotImplementedError

    def analyze(self, resource: AnalyzedResource) -> list[Finding]:
        """What the rules for single resources say of it. Raises PolicyError if a rule crashes."""
        raise NotImplementedError

    def analyze_stack(self, resources: Sequence[AnalyzedResource]) -> list[Finding]:
        """What the rules for the whole stack say. Raises PolicyError if a rule crashes."""
        raise NotImplementedError

    def close(self) -> None:
        """End the process. Safe to call twice."""
        raise NotImplementedError
