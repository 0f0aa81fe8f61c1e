"""Checks the tags that a Service gives its load balancer against what the cloud allows, and adds the owner's tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cloud_controller.cloud_errors import InvalidConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRules:
    """A cloud's limits, such as `most` tags for one resource.

    `pattern` matches allowed keys and values, whose characters `characters` describes; `reserved` are the prefixes, in
    lower case, of keys that the cloud or a controller uses.
    """

    most: int
    longest_key: int
    longest_value: int
    pattern: re.Pattern[str]
    characters: str
    reserved: tuple[str, ...]

    def merged(self, field: str, given: Mapping[str, str], own: Mapping[str, str], *, later: int) -> dict[str, str]:
        """The tags that the Service gives in `field`, with the controller's own, to which it may add `later` more.

        Raises InvalidConfiguration.
        """
        for key, value in given.items():
            if key in own or key.lower().startswith(self.reserved):
                allowed = "keys that neither the cloud nor the controller uses"
                raise InvalidConfiguration(field, f"{key!r} is a reserved tag key", allowed)
            if not self.pattern.fullmatch(key + value):
                raise InvalidConfiguration(field, f"{key}={value} contains invalid characters", self.characters)
            if len(key) > self.longest_key or len(value) > self.longest_value:
                allowed = f"at most {self.longest_key} characters in a key and {self.longest_value} in a value"
                raise InvalidConfiguration(field, f"the tag {key[: self.longest_key]!r} is too long", allowed)
        room = self.most - len(own) - later
        if len(given) > room:
            raise InvalidConfiguration(field, f"{len(given)} tags are too many", f"at most {room}")
        return {**given, **own}
