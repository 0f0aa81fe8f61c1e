"""The resources that a Service's annotations name: groups, subnets, addresses, certificates, log buckets. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.config import CLUSTER_PREFIX
from cloud_controller.clouds.aws.facts import BuildFacts
from cloud_controller.clouds.aws.request import Request, field
from cloud_controller.clouds.aws.subnets import by_word
from cloud_controller.load_balancers.model import CLUSTER_TAG, Object, Owner
from cloud_controller.load_balancers.nameable import Named, named_words

_ID = re.compile(r"(sg|eipalloc)-[0-9a-f]{1,17}")


def named(asked: Request, known: BuildFacts) -> Iterator[Named]:
    """All resources that the Service's annotations name."""
    for naming, word in named_words(CATALOGUE.namings, asked.settings, asked.spec):
        match naming.kind:
            case "subnet":
                yield _subnet(asked, naming.argument, word)
            case "security-group":
                yield _group(asked, naming.argument, word, known.group_tags.get(word, {}))
            case "elastic-ip":
                whose = _whose(asked, known.address_tags.get(word, {}))
                yield Named("elastic-ip", field(naming.argument), (word,), whose)
            case kind:
                yield Named(kind, field(naming.argument), (word,))


def named_ids(service: Object, kind: str) -> Iterator[str]:
    """The security groups or elastic IPs that the Service's annotations name, if these are valid."""
    annotations = service["metadata"].get("annotations")
    for argument in (each.argument for each in CATALOGUE.namings if each.kind == kind):
        with suppress(InvalidConfiguration):
            words = CATALOGUE.value(annotations, argument)
            yield from filter(_ID.fullmatch, words) if isinstance(words, tuple) else ()


def _subnet(asked: Request, argument: str, word: str) -> Named:
    subnet = by_word(asked.facts.subnets, word)
    return Named("subnet", field(argument), (word, subnet.id), _whose(asked, subnet.tags), subnet.tags)


def _whose(asked: Request, tags: Mapping[str, str]) -> str | None:
    """The other clusters whose tag it has, and not this one's; this project's tag counts as well as AWS's."""
    clusters = {key.removeprefix(CLUSTER_PREFIX) for key in tags if key.startswith(CLUSTER_PREFIX)}
    clusters |= {tags[CLUSTER_TAG]} if CLUSTER_TAG in tags else set()
    ours = asked.config.cluster_id in clusters or not clusters
    return None if ours else f"has the tag of cluster {', '.join(sorted(clusters))}"


def _group(asked: Request, argument: str, word: str, tags: Mapping[str, str]) -> Named:
    group = next((each for each in asked.facts.groups if each.id == word), None)
    owner = Owner.of_tags(group.tags) if group else None
    others = owner is not None and owner.uid != asked.owner.uid
    whose = f"belongs to the load balancer of {owner}" if others else None
    return Named("security-group", field(argument), (word,), whose, tags)
