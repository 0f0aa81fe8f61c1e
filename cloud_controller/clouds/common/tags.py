"""What each cloud allows of the tags that a Service gives its load balancer, as rules of its catalogue. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cloud_controller.load_balancers.refusals import Refusal
from cloud_controller.load_balancers.terms import WORD_VALUE, Term, part, say, words

_OF_ANY_CLOUD = ("cloud-controller/", "kubernetes.io/", "k8s.io/", "karpenter.sh/")
"""The prefixes of keys by which this and other controllers find what is theirs, or whose cluster it belongs to."""
_ARGUMENT = "additional_resource_tags"
_WORDS, _KEY = words(_ARGUMENT), part(0, "=")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRules:
    """A cloud's limits.

    - `room`: how many tags a Service may give: what the controller's own leave free.
    - `valid`: whether a key or value has only allowed characters, which `characters` describes.
    - `reserved`: the prefixes, in lower case, of keys that the cloud or a controller uses there. A tag with one could
      let another controller adopt, count or delete the load balancer.
    """

    room: Term
    longest_key: int
    longest_value: int
    valid: Callable[[Term], Term]
    characters: str
    reserved: tuple[str, ...]

    def refusals(self) -> Iterator[Refusal]:
        """The rules for the annotation with the tags."""
        reserved = "|".join(map(re.escape, (*_OF_ANY_CLOUD, *self.reserved)))
        yield Refusal(
            _ARGUMENT,
            _KEY.lower.matches(f"({reserved})(?s:.*)"),
            say("'{}' is a reserved tag key", _KEY.start(self.longest_key)),
            "keys that neither the cloud nor a controller uses",
            each=_WORDS,
        )
        yield Refusal(
            _ARGUMENT,
            ~(self.valid(_KEY) & self.valid(WORD_VALUE)),
            say("the tag '{}' contains invalid characters", _KEY.start(self.longest_key)),
            self.characters,
            each=_WORDS,
        )
        yield Refusal(
            _ARGUMENT,
            _KEY.size.above(self.longest_key) | WORD_VALUE.size.above(self.longest_value),
            say("the tag '{}' is too long", _KEY.start(self.longest_key)),
            f"at most {self.longest_key} characters in a key and {self.longest_value} in a value",
            each=_WORDS,
        )
        yield Refusal(
            _ARGUMENT,
            _WORDS.size.above(self.room),
            say("{} tags are too many", _WORDS.size),
            say("at most {}", self.room),
        )
