"""The resources that a Service's annotations name: groups, subnets, addresses, certificates, log buckets. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from cloud_controller.clouds.aws import attributes as aws
from cloud_controller.clouds.aws.annotations import CATALOGUE
from cloud_controller.clouds.aws.config import CLUSTER_PREFIX
from cloud_controller.clouds.aws.request import Request, field
from cloud_controller.clouds.aws.subnets import by_word
from cloud_controller.load_balancers.model import LoadBalancerModel, Owner
from cloud_controller.load_balancers.nameable import Named

TagsOfGroup = Callable[[str], Mapping[str, str]]


def named(asked: Request, model: LoadBalancerModel, tags_of_group: TagsOfGroup) -> Iterator[Named]:
    """All resources that the Service's annotations name; `model` is their result."""
    for entry in CATALOGUE:
        match entry.names:
            case "subnet":
                yield from (_subnet(asked, entry.argument, word) for word in asked.words(entry.argument))
            case "security-group":
                yield from (_group(asked, entry.argument, word, tags_of_group) for word in asked.words(entry.argument))
            case "certificate" | "elastic-ip":
                yield from (Named(entry.names, field(entry.argument), (word,)) for word in asked.words(entry.argument))
    if aws.BUCKET in model.attributes:
        # Also where they are given under AWS's own names; without a prefix, logs go to the top of the bucket.
        bucket, prefix = str(model.attributes[aws.BUCKET]), str(model.attributes.get(aws.PREFIX) or "")
        yield Named("log-bucket", field("access_log_s3_bucket_name"), (bucket,))
        yield Named("log-prefix", field("access_log_s3_bucket_prefix"), (prefix,))


def _subnet(asked: Request, argument: str, word: str) -> Named:
    subnet = by_word(asked.facts.subnets, word)
    clusters = [key.removeprefix(CLUSTER_PREFIX) for key in subnet.tags if key.startswith(CLUSTER_PREFIX)]
    ours = asked.config.cluster_tag in subnet.tags
    whose = f"has the tag of cluster {', '.join(sorted(clusters))}" if clusters and not ours else None
    return Named("subnet", field(argument), (word, subnet.id), whose, lambda: subnet.tags)


def _group(asked: Request, argument: str, word: str, tags_of_group: TagsOfGroup) -> Named:
    group = next((each for each in asked.facts.groups if each.id == word), None)
    owner = Owner.of_tags(group.tags) if group else None
    others = owner is not None and owner.uid != asked.owner.uid
    whose = f"belongs to the load balancer of {owner}" if others else None
    tags = partial(tags_of_group, word)
    return Named("security-group", field(argument), (word,), whose, tags)
