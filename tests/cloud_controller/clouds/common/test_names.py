"""Names within a cloud's length and characters: the same again for the same resource, never the same for two."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cloud_controller.clouds.common.names import hashed_name

dns_labels = some.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(some.lists(dns_labels, max_size=3), some.text(), some.integers(24, 80))
def test_a_name_has_no_other_character_and_no_more_than_the_cloud_allows(
    words: list[str], distinct: str, longest: int
) -> None:
    found = hashed_name("k8s-", words, distinct, longest=longest)

    assert re.fullmatch("k8s(-[A-Za-z0-9]+)+", found)
    assert len(found) <= longest
    assert found == hashed_name("k8s-", words, distinct, longest=longest)


@pytest.mark.parametrize(
    ("words", "longest", "expected"),
    [
        (["shop", "web"], 32, "k8s-shop-web-17b788a70e"),
        (["my-namespace", "my-service"], 32, "k8s-mynamesp-myservic-17b788a70e"),
        (["my-namespace", "my-service"], 63, "k8s-mynamespace-myservice-17b788a70e"),
        (["...", "web"], 32, "k8s-web-17b788a70e"),
        ([], 32, "k8s-17b788a70e"),
    ],
)
def test_a_name_shows_as_much_of_each_word_as_there_is_room_for(words: list[str], longest: int, expected: str) -> None:
    assert hashed_name("k8s-", words, "uid", longest=longest) == expected


def test_resources_with_the_same_words_have_different_names() -> None:
    assert hashed_name("k8s-", ["web"], "a", longest=32) != hashed_name("k8s-", ["web"], "b", longest=32)
