"""Our signature is the official SDK's, whatever is signed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_controller.clouds.alicloud.signature import ALGORITHM, authorization, canonical_query, digest

sdk = pytest.importorskip("alibabacloud_tea_openapi.utils")

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}(\.[0-9]{1,2}(\.[A-Za-z]{1,5})?)?", fullmatch=True)
TEXTS = st.text(max_size=20).filter(lambda text: text.isprintable())
HEADERS = st.dictionaries(st.from_regex(r"x-acs-[a-z]{1,8}", fullmatch=True), st.text("abc-:,=/ 019Z", max_size=12))


@given(
    query=st.dictionaries(NAMES, TEXTS, max_size=6),
    headers=HEADERS,
    body=st.binary(max_size=20),
    secret=TEXTS,
    path=st.sampled_from(["/", "/k8s/c-1/user_config"]),
)
def test_a_request_is_signed_as_the_sdk_signs_it(
    query: dict[str, str], headers: dict[str, str], body: bytes, secret: str, path: str
) -> None:
    signed = {"Host": "ecs.example", **headers}
    request = SimpleNamespace(method="POST", pathname=path, query=query, headers=signed)

    theirs = sdk.Utils.get_authorization(request, ALGORITHM, digest(body), "key", secret)

    assert authorization("POST", canonical_query(query), signed, digest(body), "key", secret, path) == theirs


def test_spaces_stars_and_tildes_in_a_query_are_encoded_as_the_api_expects() -> None:
    assert canonical_query({"b": "a b*~/é", "a": ""}) == "a=&b=a%20b%2A~%2F%C3%A9"
