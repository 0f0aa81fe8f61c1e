"""Runs a policy pack in the real analyzer server, a process of its own, and queries it about resources.

The process is `python -u -m pulumi.policy ENGINE_ADDRESS PACK_FOLDER`, started as the CLI starts it: in the pack's
folder, with the interpreter of the virtualenv that PulumiPolicy.yaml names. A rule that cannot run because a value is
unknown is reported as not evaluated, which is neither a pass nor a violation.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from cloud_controller import yaml_text
from cloud_stacks.policies.config import PolicyConfigError, Rule, RuleConfig, parse, reconcile
from cloud_stacks.policies.resources import (
    AnalyzedOptions,
    AnalyzedProvider,
    AnalyzedResource,
    analyze_request,
    stack_resource,
)
from local.plugins import wire
from local.plugins.channels import open_channel
from local.plugins.plugin_process import PluginError, PluginProcess
from local.plugins.values import PropertyMap

__all__ = ["AnalyzedOptions", "AnalyzedProvider", "AnalyzedResource", "Finding", "Level", "PolicyError", "PolicyHost"]

Level = Literal["advisory", "mandatory", "remediate", "disabled", "not-evaluated"]

PACK_FILE = "PulumiPolicy.yaml"
CALL_SECONDS = 300.0
"""A rule that takes longer than this hangs."""
_LEVELS: tuple[Level, ...] = ("advisory", "mandatory", "disabled", "remediate")
_KEPT_BACK = frozenset({"PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"})
"""Removed from the pack's environment: with these it could read every secret of the stack."""
_SEVERITIES = ("", "low", "medium", "high", "critical")


class PolicyError(Exception):
    """The pack could not be started, configured or queried; the message is for people."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule for one resource.

    `message` does not repeat `description` (a rule's events have both, in that order). `urn` is never empty: a stack
    rule's finding without a resource has the stack's. `version` is PulumiPolicy.yaml's.
    """

    policy: str
    pack: str
    version: str
    level: Level
    message: str
    urn: str
    description: str
    severity: str = ""
    rule_level: Level = "advisory"
    """The rule's own level, which `level` is not where it could not be evaluated."""


Change = tuple[PropertyMap, PropertyMap]
"""Inputs before and after a remediation."""


class PolicyHost:
    """One pack, started and configured. Calls are safe from several threads; the server answers four at once."""

    name: str
    version: str
    """PulumiPolicy.yaml's version; the server itself does not know it."""

    def __init__(
        self,
        process: PluginProcess,
        channel: grpc.Channel,
        info: analyzer_pb2.AnalyzerInfo,
        levels: Mapping[str, Level],
        version: str,
        stack: str,
    ) -> None:
        self.name = info.name
        self.version = version or info.version
        self._process = process
        self._channel = channel
        self._stub = analyzer_pb2_grpc.AnalyzerStub(channel)
        self._stack_urn = stack
        self._policies = {policy.name: policy for policy in info.policies}
        self._levels = levels

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
        report: Callable[[str], None] = lambda _line: None,
        environment: Mapping[str, str] = os.environ,
        python: str = sys.executable,
    ) -> PolicyHost:
        """Start the pack's server, configure it, and return when it answers.

        `config` holds plain texts by "namespace:key". `policy_config` is the content of --policy-pack-config. `report`
        gets the pack's output, line by line. `python`: for a pack that names none.
        Raises PolicyError: no pack there, interpreter missing, crash at start (with its last lines), bad configuration.
        """
        pack_dir = pack_dir.resolve()
        pack = _read_pack(pack_dir)
        process = _start_process(
            [_python(pack_dir, pack) or python, "-u", "-m", "pulumi.policy", engine_address, str(pack_dir)],
            pack_dir,
            {
                **{key: value for key, value in environment.items() if key not in _KEPT_BACK},
                "PULUMI_PROJECT": project,
                "PULUMI_STACK": stack,
                "PULUMI_ORGANIZATION": organization,
                "PULUMI_DRY_RUN": "true" if dry_run else "false",
                "PULUMI_CONFIG": json.dumps(dict(config)),
                "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(config_secret_keys)),
            },
            report,
        )
        channel = open_channel(f"127.0.0.1:{process.port}")
        try:
            stub = analyzer_pb2_grpc.AnalyzerStub(channel)
            stub.ConfigureStack(
                analyzer_pb2.AnalyzerStackConfigureRequest(
                    stack=stack,
                    project=project,
                    organization=organization,
                    dry_run=dry_run,
                    config=config,
                    config_secret_keys=config_secret_keys,
                ),
                timeout=CALL_SECONDS,
            )
            info = stub.GetAnalyzerInfo(Empty(), timeout=CALL_SECONDS)
            configured = _configuration(info, policy_config)
            stub.Configure(configured, timeout=CALL_SECONDS)
        except (grpc.RpcError, PolicyConfigError) as error:
            channel.close()
            process.stop()
            raise PolicyError(f"policy pack {pack_dir}: {_reason(error)}") from None
        stack_urn = f"urn:pulumi:{stack}::{project}::pulumi:pulumi:Stack::{project}-{stack}"
        levels = {name: _LEVELS[config.enforcementLevel] for name, config in configured.policyConfig.items()}
        return cls(process, channel, info, levels, str(pack.get("version", "")), stack_urn)

    @property
    def mandatory(self) -> frozenset[str]:
        """The rules whose violation would stop an update."""
        return frozenset(name for name, level in self._levels.items() if level == "mandatory")

    def remediate(self, resource: AnalyzedResource) -> tuple[PropertyMap, list[tuple[Finding, Change | None]]]:
        """The inputs after the pack's remediations, and a finding for each that changed something or failed.

        Each finding has the inputs before and after it; None: unchanged.
        """
        response = self._call(self._stub.Remediate, analyze_request(resource, internal_keys=True), resource.urn)
        properties = resource.properties
        findings = []
        for remediation in response.remediations:
            level: Level = "not-evaluated"
            change: Change | None = None
            if not remediation.diagnostic:
                level, change = "remediate", (properties, wire.from_struct(remediation.properties))
                properties = change[1]
            policy = remediation.policyName
            found = self._finding(policy, level, remediation.diagnostic, resource.urn, remediation.description)
            findings.append((found, change))
        return properties, findings

    def analyze(self, resource: AnalyzedResource) -> list[Finding]:
        """The findings of the rules for single resources. Raises PolicyError if a rule crashes."""
        response = self._call(self._stub.Analyze, analyze_request(resource, internal_keys=False), resource.urn)
        return self._findings(response, resource.urn)

    def analyze_stack(self, resources: Sequence[AnalyzedResource]) -> list[Finding]:
        """The findings of the rules for the whole stack. Raises PolicyError if a rule crashes."""
        request = analyzer_pb2.AnalyzeStackRequest(resources=[stack_resource(resource) for resource in resources])
        return self._findings(self._call(self._stub.AnalyzeStack, request, "the stack"), self._stack_urn)

    def close(self) -> None:
        """End the process. Safe to call twice."""
        self._channel.close()
        self._process.stop()

    def _call(self, method: Callable[..., Any], request: Any, subject: str) -> Any:
        try:
            return method(request, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            # The server returns only the exception's text; the traceback is among the lines passed to `report`.
            raise PolicyError(f"a rule of policy pack {self.name} crashed on {subject}: {_reason(error)}") from None

    def _findings(self, response: analyzer_pb2.AnalyzeResponse, default_urn: str) -> list[Finding]:
        findings = []
        for diagnostic in response.diagnostics:
            level = _LEVELS[diagnostic.enforcementLevel]
            message = diagnostic.message
            # The server's own message, at level advisory; the message of a rule follows its description.
            if message.startswith(f"can't run policy '{diagnostic.policyName}' from policy pack "):
                level = "not-evaluated"
            message = message.removeprefix(diagnostic.description).removeprefix("\n")
            urn = diagnostic.urn or default_urn
            findings.append(self._finding(diagnostic.policyName, level, message, urn, diagnostic.description))
        return findings

    def _finding(self, policy: str, level: Level, message: str, urn: str, description: str) -> Finding:
        severity = self._policies[policy].severity if policy in self._policies else 0
        rule_level = self._levels.get(policy, "advisory")
        return Finding(
            policy, self.name, self.version, level, message, urn, description, _SEVERITIES[severity], rule_level
        )


def _read_pack(pack_dir: Path) -> Mapping[str, Any]:
    path = pack_dir / PACK_FILE
    try:
        pack = yaml_text.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyError(f"{pack_dir} is not a policy pack: {path.name}: {error.strerror}") from None
    except yaml_text.NotYaml as error:
        raise PolicyError(f"{path} is {error}") from None
    if not isinstance(pack, Mapping):
        raise PolicyError(f"{path} must be an object with at least `runtime`")
    name = _runtime(pack).get("name")
    if name != "python":
        raise PolicyError(f"{path}: runtime is {name!r}; only python packs can be tested")
    return pack


def _runtime(pack: Mapping[str, Any]) -> Mapping[str, Any]:
    runtime = pack.get("runtime")
    return runtime if isinstance(runtime, Mapping) else {"name": runtime}


def _python(pack_dir: Path, pack: Mapping[str, Any]) -> str:
    """The virtualenv's interpreter; "" where the pack names none (the CLI takes PATH's python3)."""
    options = _runtime(pack).get("options") or {}
    virtualenv = options.get("virtualenv")
    if not virtualenv:
        return ""
    python = pack_dir / str(virtualenv) / "bin" / "python"
    if not python.exists():
        raise PolicyError(f"{pack_dir / PACK_FILE}: runtime.options.virtualenv: {python} does not exist")
    return str(python)


def _start_process(
    arguments: Sequence[str], cwd: Path, env: Mapping[str, str], report: Callable[[str], None]
) -> PluginProcess:
    try:
        return PluginProcess(arguments, cwd=cwd, env=env, on_line=report)
    except PluginError as error:
        raise PolicyError(f"policy pack {cwd} did not start: {error}") from None


def _configuration(
    info: analyzer_pb2.AnalyzerInfo, given: Mapping[str, Any] | None
) -> analyzer_pb2.ConfigureAnalyzerRequest:
    rules = [
        Rule(
            policy.name,
            _LEVELS[policy.enforcementLevel],
            MessageToDict(policy.configSchema.properties),
            list(policy.configSchema.required),
        )
        for policy in info.policies
    ]
    # An initial config without a level arrives as advisory, the protocol's zero: it must not weaken a rule.
    initial = {
        name: RuleConfig(
            _LEVELS[config.enforcementLevel] if config.enforcementLevel else None, MessageToDict(config.properties)
        )
        for name, config in info.initialConfig.items()
    }
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    for name, config in reconcile(rules, initial, parse(given or {})).items():
        target = request.policyConfig[name]
        target.enforcementLevel = cast(Any, _LEVELS.index(cast(Level, config.level)))
        target.properties.update(dict(config.properties))
    return request


def _reason(error: Exception) -> str:
    """The error on one line; the server prefixes a crashed rule's exception with a fixed phrase."""
    if isinstance(error, grpc.Call):
        return (error.details() or str(error.code())).removeprefix("Exception calling application: ")
    return str(error)
