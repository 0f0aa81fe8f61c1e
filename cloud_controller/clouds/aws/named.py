"""The resources that a Service's annotations name: groups, subnets, addresses, certificates, log buckets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.config import CLUSTER_PREFIX
from cloud_controller.clouds.aws.request import Request, field
from cloud_controller.clouds.aws.subnets import by_word
from cloud_controller.load_balancers.model import Object, Owner
from cloud_controller.load_balancers.nameable import Named, named_words

_GROUP_ID = re.compile(r"sg-[0-9a-f]{1,17}")


def named(asked: Request, group_tags: Mapping[str, Mapping[str, str]]) -> Iterator[Named]:
    """All resources that the Service's annotations name."""
    for naming, word in named_words(asked.settings, asked.spec):
        match naming.kind:
            case "subnet":
                yield _subnet(asked, naming.argument, word)
            case "security-group":
                yield _group(asked, naming.argument, word, group_tags.get(word, {}))
            case kind:
                yield Named(kind, field(naming.argument), (word,))


def named_groups(service: Object) -> Iterator[str]:
    """The security groups that the Service's annotations name, if these are valid."""
    annotations = service["metadata"].get("annotations")
    for entry in CATALOGUE:
        if entry.names == "security-group":
            with suppress(InvalidConfiguration):
                words = CATALOGUE.value(annotations, entry.argument)
                yield from filter(_GROUP_ID.fullmatch, words) if isinstance(words, tuple) else ()


def _subnet(asked: Request, argument: str, word: str) -> Named:
    subnet = by_word(asked.facts.subnets, word)
    clusters = [key.removeprefix(CLUSTER_PREFIX) for key in subnet.tags if key.startswith(CLUSTER_PREFIX)]
    ours = asked.config.cluster_tag in subnet.tags
    whose = f"has the tag of cluster {', '.join(sorted(clusters))}" if clusters and not ours else None
    return Named("subnet", field(argument), (word, subnet.id), whose, subnet.tags)


def _group(asked: Request, argument: str, word: str, tags: Mapping[str, str]) -> Named:
    group = next((each for each in asked.facts.groups if each.id == word), None)
    owner = Owner.of_tags(group.tags) if group else None
    others = owner is not None and owner.uid != asked.owner.uid
    whose = f"belongs to the load balancer of {owner}" if others else None
    return Named("security-group", field(argument), (word,), whose, tags)
