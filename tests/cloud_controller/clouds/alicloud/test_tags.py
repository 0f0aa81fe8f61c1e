"""Tags of any length, as the cloud stores them."""

from __future__ import annotations

import re

import pytest

from cloud_controller.clouds.alicloud.tags import stored, tag_list, tags_of


@pytest.mark.parametrize("tags", [{}, {"a": "1"}, {"a": "x" * 120}, {"a": '{"x": "ü"}' * 60, "b": ""}])
@pytest.mark.parametrize("names", [("Key", "Value"), ("TagKey", "TagValue")])
def test_tags_of_any_length_come_back_whole(tags: dict[str, str], names: tuple[str, str]) -> None:
    sent = tag_list(tags)

    assert all(len(each["Value"]) <= 128 and re.fullmatch(r"[\w.:/=+@-]*", each["Value"]) for each in sent)
    assert {each["Key"]: each["Value"] for each in sent} == stored(tags)
    assert tags_of({names[0]: each["Key"], names[1]: each["Value"]} for each in sent) == tags


def test_pieces_that_somebody_edited_are_passed_on() -> None:
    assert tags_of([{"Key": "a.part-0", "Value": "not base64!"}]) == {"a": "not base64!"}
