"""No value, wherever it stands in a resource, crashes a rule or gets into a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NoReturn

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given
from hypothesis import strategies as st
from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    StackValidationArgs,
)
from pulumi_policy.deserialize import deserialize_properties
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy

from cloud_stacks.policies.host import AnalyzedResource, PolicyHost
from local.plugins import wire
from policy.checklist import POLICIES
from policy.rules import ResourceRule, Rule
from tests.policy.production import resources
from tests.policy_objects import ccm, of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

STACKS = ("aws-prod", "mycloud-ha")
SECRET = "Zq7-odd-Secret-9f"
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", SECRET, f"password: {SECRET}", f"{SECRET}/33", "0x", "٣", "9" * 5000, "a\nb: [", "=", "@"]),
    st.just(UNKNOWN_STRING_VALUE),
)
VALUES = st.recursive(
    ODD,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["", "name", "value", "key", "cidr", "containers"]), inner, max_size=3),
    ),
    max_leaves=5,
)
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    resource: AnalyzedResource
    alone: Any
    """Its inputs, as the rules for single resources see them."""
    whole: Any
    """Its outputs, as the rules for stacks do."""


class _NotApplicable(Exception):
    """The rule says that the stack is none of its business."""


class _Stack(StackValidationArgs):
    def not_applicable(self, reason: str | None = None) -> NoReturn:
        raise _NotApplicable(reason)


@pytest.mark.nightly
@given(stack=st.sampled_from(STACKS), value=VALUES, data=st.data())
def test_an_odd_value_crashes_no_rule_and_is_in_no_message(stack: str, value: Any, data: st.DataObject) -> None:
    small = _small(stack)
    index = data.draw(st.sampled_from([index for index, each in enumerate(small) if each.whole]), label="resource")
    path = data.draw(st.sampled_from([*_paths(small[index].whole)]), label="path")
    odd = replace(
        small[index],
        alone=_replaced(small[index].alone, path, value),
        whole=_replaced(small[index].whole, path, value),
    )

    messages = [*_judged(odd, [*small[:index], odd, *small[index + 1 :]])]

    assert not [message for message in messages if SECRET in message]


def test_a_value_of_the_wrong_type_violates_the_rule_that_reads_it(pack: PolicyHost) -> None:
    odd = ccm(securityContext={"runAsNonRoot": True, "runAsUser": "nobody"})

    found = pack.analyze(odd)

    [message] = [finding.message for finding in found if finding.policy == "ccm-workload-run-as-non-root"]
    assert message.startswith("cannot be judged: a value is of another type than its field has (ValueError in ")
    assert of(found, "ccm-workload-set-probes") == []


def _judged(one: _Seen, stack: Sequence[_Seen]) -> Iterator[str]:
    """The messages of all rules about one resource, and about the stack."""
    for rule in POLICIES:
        messages: list[str] = []
        try:
            if isinstance(rule, ResourceRule):
                rule.validate(_arguments(one, rule), partial(_keep, messages))
            else:
                rule.validate(_Stack(_linked(stack), _defaults(rule)), partial(_keep, messages))
        except UnknownValueError as error:
            messages.append(error.message)
        except _NotApplicable as error:
            messages.append(str(error))
        yield from messages


def _keep(messages: list[str], message: str, _urn: str | None = None) -> None:
    messages.append(message)


@cache
def _small(stack: str) -> tuple[_Seen, ...]:
    """Two resources of each type of a stack."""
    found: dict[str, list[_Seen]] = {}
    for each in resources(stack):
        seen = _Seen(each.in_stack, _properties(each.alone), _properties(each.in_stack))
        found.setdefault(each.alone.type, []).append(seen)
    return tuple(each for of_type in found.values() for each in of_type[:2])


def _properties(resource: AnalyzedResource) -> Any:
    """As the analyzer server hands them to rules."""
    return deserialize_properties(MessageToDict(wire.to_struct(resource.properties, resources=False)))


def _arguments(one: _Seen, rule: Rule) -> ResourceValidationArgs:
    about = one.resource
    props = unknown_checking_proxy(one.alone)
    return ResourceValidationArgs(about.type, props, about.urn, about.name, _OPTIONS, None, _defaults(rule))


def _linked(stack: Sequence[_Seen]) -> list[PolicyResource]:
    made = {}
    for each in stack:
        about, given_by = each.resource, each.resource.provider
        provider = PolicyProviderResource(given_by.type, {}, given_by.urn, given_by.name) if given_by else None
        props = unknown_checking_proxy(each.whole)
        made[about.urn] = PolicyResource(about.type, props, about.urn, about.name, _OPTIONS, provider, None, [], {})
    for about in (each.resource for each in stack):
        resource = made[about.urn]
        resource.parent = made.get(about.parent)
        resource.dependencies = [made[urn] for urn in about.dependencies if urn in made]
        resource.property_dependencies = {
            key: [made[urn] for urn in urns if urn in made] for key, urns in about.property_dependencies.items()
        }
    return [*made.values()]


def _defaults(rule: Rule) -> dict[str, Any]:
    """What the server gives a rule without settings."""
    schema = rule.config_schema
    return {name: each["default"] for name, each in schema.properties.items()} if schema else {}


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _paths(each, (*path, key))


def _replaced(value: Any, path: Path, new: Any) -> Any:
    """The same with another value there; without it, where an input has no such path."""
    if not path:
        return new
    head, *rest = path
    if isinstance(value, Mapping):
        return {**value, head: _replaced(value.get(head), tuple(rest), new)}
    if isinstance(value, list) and isinstance(head, int):
        return [_replaced(each, tuple(rest), new) if index == head else each for index, each in enumerate(value)]
    return value


_OPTIONS = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [], None)
