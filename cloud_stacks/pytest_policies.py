"""A pytest plugin: tests of anybody's policy pack, by Pulumi's real analyzer server (pulumi-policy#445).

    def test_a_password_belongs_in_a_secret(policy_pack: PolicyPack) -> None:
        findings = policy_pack.check(Resource("kubernetes:core/v1:ConfigMap", {"data": {"password": "hunter2"}}))

        assert [finding.policy for finding in findings] == ["object-avoid-credentials"]

The pack runs as the CLI runs it, in a process of its own: defaults of settings, levels, unknown values and secrets are
Pulumi's. `Unknown` and `Secret` stand for values that a preview does not know, or that are secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    # Imported on use: every run of pytest loads the plugin.
    from cloud_stacks.policies.host import Finding, PolicyHost

_FOLDER = "policy_pack"


class Unknown:
    """A value that only the update gives."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret value; rules see it in plain text."""

    value: Any


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource for rules to judge: its type token and properties, and for rules about stacks what it depends on."""

    type: str
    properties: Mapping[str, Any]
    name: str = "resource"
    depends_on: Sequence[Resource] = ()
    parent: Resource | None = None
    provider: Resource | None = None
    """The explicit provider, whose type is `pulumi:providers:PACKAGE`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """`protect`, `ignore_changes`, `delete_before_replace`, `additional_secret_outputs`; timeouts in seconds."""

    @property
    def urn(self) -> str:
        """Its URN in stack `dev` of project `sample`."""
        return f"urn:pulumi:dev::sample::{self.type}::{self.name}"


class PolicyPack:
    """A running policy pack."""

    def __init__(self, host: PolicyHost) -> None:
        self._host = host

    def check(self, *resources: Resource) -> list[Finding]:
        """What the rules for single resources find in each, then what those for stacks find in all of them.

        A finding has `policy`, `message`, `urn` and `level`: `advisory`, `mandatory`, or `not-evaluated` where a value
        is unknown. Raises PolicyError if a rule crashes.
        """
        analyzed = [_analyzed(resource) for resource in resources]
        alone = [finding for each in analyzed for finding in self._host.analyze(each)]
        return [*alone, *self._host.analyze_stack(analyzed)]

    def remediate(self, resource: Resource) -> Mapping[str, Any]:
        """The resource's properties after the rules of level `remediate`. Raises PolicyError if one crashes."""
        properties, _ = self._host.remediate(_analyzed(resource))
        return properties


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(_FOLDER, "the folder of the policy pack that the fixture policy_pack runs", default="policy")


@pytest.fixture(scope="session")
def start_policy_pack(pytestconfig: pytest.Config) -> Iterator[Callable[..., PolicyPack]]:
    """Start the pack with a configuration, as `--policy-pack-config` has it: `start_policy_pack({"rule": {…}})`.

    `folder` overrides the ini option `policy_pack`. Packs end with the session.
    """
    from cloud_stacks.policies.host import PolicyHost

    hosts: list[PolicyHost] = []

    def start(config: Mapping[str, Any] | None = None, folder: Path | str | None = None) -> PolicyPack:
        host = PolicyHost.start(
            pytestconfig.rootpath / (folder or str(pytestconfig.getini(_FOLDER))),
            # No rule of ours, nor of Pulumi's samples, calls the engine.
            engine_address="127.0.0.1:1",
            project="sample",
            stack="dev",
            dry_run=True,
            config={},
            policy_config=config,
        )
        hosts.append(host)
        return PolicyPack(host)

    yield start
    for host in hosts:
        host.close()


@pytest.fixture(scope="session")
def policy_pack(start_policy_pack: Callable[..., PolicyPack]) -> PolicyPack:
    """The pack of the ini option `policy_pack`, with its own defaults."""
    return start_policy_pack()


def _analyzed(resource: Resource) -> Any:
    from cloud_stacks.policies.host import AnalyzedOptions, AnalyzedProvider, AnalyzedResource

    given = resource.provider
    provider = AnalyzedProvider(given.type, given.urn, given.name, _value(given.properties)) if given else None
    return AnalyzedResource(
        type=resource.type,
        urn=resource.urn,
        name=resource.name,
        properties=_value(resource.properties),
        options=AnalyzedOptions(**resource.options),
        provider=provider,
        parent=resource.parent.urn if resource.parent else "",
        dependencies=tuple(each.urn for each in resource.depends_on),
    )


def _value(value: Any) -> Any:
    from local.plugins import values

    if value is Unknown or isinstance(value, Unknown):
        return values.UNKNOWN
    if isinstance(value, Secret):
        return values.Secret(_value(value.value))
    if isinstance(value, Mapping):
        return {key: _value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    return value
