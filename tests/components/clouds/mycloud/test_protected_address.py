"""A protected Service that a daemon serves: what the component's hook says of an update, by the stack's config."""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Iterator

import pulumi
import pytest

from cloud_controller.clouds.mycloud.annotations import CATALOGUE
from cloud_controller.controllers.service.address_changes import ANNOTATION
from components.address_change import ProtectedAddress, View, check_update
from tests.cloud_controller.clouds.mycloud.services import SCHEME
from tests.cloud_controller.load_balancing import Running, changed
from tests.components.test_address_change import hook_args

pytestmark = pytest.mark.integration
INTERNAL = {SCHEME: "internal"}


def update(annotations: dict[str, str], before: dict[str, str] | None = None) -> None:
    """What the hook does before an update of `default/web` to these annotations."""

    async def run() -> None:
        config = {"test:mycloud": '{"endpoint": "http://127.16.0.1:7070"}', "test:mycloudToken": "t"}
        pulumi.runtime.set_all_config(config, ["test:mycloudToken"])
        view = View("mycloud", "c-1", "n-1", False, (), pulumi.Config("test"))
        await check_update(hook_args(annotations, before), CATALOGUE, view, protect=True)

    contextvars.copy_context().run(asyncio.run, run())


def refusal(annotations: dict[str, str], before: dict[str, str] | None = None) -> str:
    with pytest.raises(ProtectedAddress) as refused:
        update(annotations, before)
    return str(refused.value)


def digest_in(text: str) -> str:
    [digest] = re.findall('default/web: "([0-9a-f]+)"', text)
    return str(digest)


@pytest.fixture(autouse=True)
def served(running: Running) -> Iterator[None]:
    assert running.cluster.ingress
    yield


def test_an_update_fails_until_the_digest_that_it_prints_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    refused = refusal(INTERNAL)

    update({**INTERNAL, ANNOTATION: digest_in(refused)})

    assert "scheme: internet-facing -> internal" in refused
    assert "scheme: internet-facing -> internal" in capsys.readouterr().err


def test_the_digest_of_a_change_that_happened_lets_no_other_happen(running: Running) -> None:
    digest = digest_in(refusal(INTERNAL))
    changed(running.cluster, INTERNAL)
    running.settle()

    back = refusal({SCHEME: "internet-facing", ANNOTATION: digest}, before=INTERNAL)

    assert f"{digest} is for another change" in back
    assert digest_in(back) != digest


def test_a_change_in_place_passes() -> None:
    update({f"{SCHEME.rpartition('-')[0]}-listener-maxqps": "7"})
