"""Access keys: fixed, of the pod's role and of the machine's; renewed in time, and shown nowhere."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cloud_controller import logs
from cloud_controller.cloud import AccessDenied, CallObserver, InvalidConfiguration, Unavailable
from cloud_controller.clouds.alicloud.config import AccessKey, Config
from cloud_controller.clouds.alicloud.credentials import (
    PROVIDER,
    ROLE,
    TOKEN_FILE,
    FixedKey,
    MachineRole,
    PodRole,
    RoleKey,
    of_config,
)
from tests.cloud_controller.clouds.alicloud.fake_http import FakeHttp, refusal

CONFIG = Config("c-1", "cn-hangzhou", "vpc-1", session_name="ccm")
TOKEN = "a-token-of-a-service-account"
KEY = {
    "AccessKeyId": "STS.1",
    "AccessKeySecret": "a-secret-of-a-role",
    "SecurityToken": "a-session-token",
    "Expiration": "2026-11-23T10:00:00Z",
}
EXPIRES = 1795428000.0


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return {
        ROLE: "acs:ram::1:role/ccm",
        PROVIDER: "acs:ram::1:oidc-provider/c-1",
        TOKEN_FILE: str(path),
    }


def role_of(
    environment: Mapping[str, str], *answers: Any, observer: CallObserver | None = None
) -> tuple[PodRole, FakeHttp]:
    role, http = PodRole(CONFIG, environment, observer), FakeHttp(*answers)
    role._client._http = http  # type: ignore[assignment]
    role._client._sleep = lambda _: None
    return role, http


# ----------------------------------------------------------------------------------------------------- which source


def test_the_cloud_configs_key_comes_before_the_pods_role_and_that_before_the_machines(
    environment: Mapping[str, str],
) -> None:
    key = AccessKey("LTAI1", "a-secret-of-a-user")

    assert of_config(replace(CONFIG, access_key=key), environment).key() == key
    of_pod, of_machine = of_config(CONFIG, environment), of_config(CONFIG, {})
    assert isinstance(of_pod, RoleKey) and isinstance(of_machine, RoleKey)
    assert isinstance(of_pod._fetch.__self__, PodRole)  # type: ignore[attr-defined]
    assert isinstance(of_machine._fetch.__self__, MachineRole)  # type: ignore[attr-defined]


def test_a_role_without_its_provider_is_an_error_that_names_the_variable(environment: Mapping[str, str]) -> None:
    with pytest.raises(InvalidConfiguration, match=PROVIDER):
        of_config(CONFIG, {ROLE: environment[ROLE], TOKEN_FILE: "x"})


def test_a_fixed_key_that_is_refused_has_no_successor() -> None:
    key = AccessKey("LTAI1", "a-secret-of-a-user")

    assert not FixedKey(key).refused(key)


# ------------------------------------------------------------------------------------------------------- pod's role


def test_the_pods_token_is_sent_unsigned_in_the_form_body_alone(environment: Mapping[str, str]) -> None:
    role, http = role_of(environment, {"Credentials": KEY})

    key, expires = role.fetch()

    (sent,) = http.sent
    assert (key, expires) == (AccessKey("STS.1", "a-secret-of-a-role", "a-session-token"), EXPIRES)
    assert sent.form == {
        "RoleArn": environment[ROLE],
        "OIDCProviderArn": environment[PROVIDER],
        "OIDCToken": TOKEN,
        "RoleSessionName": "ccm",
        "DurationSeconds": "3600",
    }
    assert sent.query == {"Format": "json"}
    assert "Authorization" not in sent.headers
    assert TOKEN not in sent.url + str(sent.headers)


def test_the_observer_hears_of_each_attempt_to_assume_the_role(environment: Mapping[str, str]) -> None:
    heard: list[str] = []
    answers = (refusal("Throttling"), {"Credentials": KEY})

    role, _ = role_of(environment, *answers, observer=lambda operation, *_: heard.append(operation))
    role.fetch()

    assert heard == ["sts AssumeRoleWithOIDC"] * 2


def test_the_token_is_read_again_each_time(environment: Mapping[str, str]) -> None:
    role, http = role_of(environment, {"Credentials": KEY}, {"Credentials": KEY})
    role.fetch()
    Path(environment[TOKEN_FILE]).write_text("another-token-of-the-account")

    role.fetch()

    assert http.sent[1].form["OIDCToken"] == "another-token-of-the-account"


def test_a_refused_token_is_in_no_error_and_no_log(environment: Mapping[str, str]) -> None:
    role, _ = role_of(environment, refusal("AuthenticationFail.OIDCToken.Expired", "This OIDC token expired."))

    with pytest.raises(AccessDenied, match=r"AuthenticationFail\.OIDCToken\.Expired") as failed:
        role.fetch()

    assert TOKEN not in "".join(traceback.format_exception(failed.value))
    assert logs.redacted(f"x {TOKEN}") == "x [redacted]"


def test_a_missing_token_file_is_an_error_that_names_the_variable(environment: Mapping[str, str]) -> None:
    role, _ = role_of({**environment, TOKEN_FILE: "/no/such/file"})

    with pytest.raises(InvalidConfiguration, match=f"{TOKEN_FILE}: could not read the file: No such file"):
        role.fetch()


def test_an_answer_without_a_key_is_an_error_without_the_answer(environment: Mapping[str, str]) -> None:
    role, _ = role_of(environment, {"Credentials": {**KEY, "Expiration": "soon"}})

    with pytest.raises(Unavailable, match="did not return the key") as failed:
        role.fetch()

    assert KEY["AccessKeySecret"] not in "".join(traceback.format_exception(failed.value))


# ---------------------------------------------------------------------------------------------------- machine's role


class Metadata:
    """The metadata service: only with a token, as machines that allow nothing else."""

    def __init__(self, role: str | None = "ccm-role") -> None:
        self.role = role
        self.asked: list[str] = []

    def send(self, method: str, endpoint: str, target: str, *, headers: Mapping[str, str], **_: Any) -> Any:
        self.asked.append(f"{method} {endpoint}{target}")
        if method == "PUT":
            assert headers == {"X-aliyun-ecs-metadata-token-ttl-seconds": "60"}
            return SimpleNamespace(status=200, data=b"a-metadata-token")
        assert headers == {"X-aliyun-ecs-metadata-token": "a-metadata-token"}
        if self.role is None:
            return SimpleNamespace(status=404, data=b"")
        is_key = target.endswith(self.role)
        return SimpleNamespace(status=200, data=json.dumps(KEY).encode() if is_key else self.role.encode())


def test_the_machines_role_is_read_with_a_token() -> None:
    metadata, role = Metadata(), MachineRole("http://metadata")
    role._http = metadata  # type: ignore[assignment]

    key, expires = role.fetch()

    assert (key.id, expires) == ("STS.1", EXPIRES)
    assert metadata.asked == [
        "PUT http://metadata/latest/api/token",
        "GET http://metadata/latest/meta-data/ram/security-credentials/",
        "GET http://metadata/latest/meta-data/ram/security-credentials/ccm-role",
    ]


def test_a_machine_without_a_role_is_an_error_that_names_every_source() -> None:
    role = MachineRole("http://metadata")
    role._http = Metadata(None)  # type: ignore[assignment]

    with pytest.raises(AccessDenied, match="no access key in the cloud config, no role of the pod or the machine"):
        role.fetch()


# ----------------------------------------------------------------------------------------------------------- renewal


class Role:
    """Each fetch gives another key, for an hour; `fails` makes it fail."""

    def __init__(self) -> None:
        self.now, self.fetched, self.fails = 0.0, 0, False
        self.keys = RoleKey(self._fetch, now=lambda: self.now)

    def _fetch(self) -> tuple[AccessKey, float]:
        self.fetched += 1
        if self.fails:
            raise Unavailable("no answer")
        return AccessKey(f"STS.{self.fetched}", "a-secret-of-a-role", "a-session-token"), self.now + 3600

    def at(self, now: float) -> str:
        self.now = now
        key = self.keys.key()
        assert key is not None
        return key.id


@pytest.fixture
def role() -> Iterator[Role]:
    yield Role()


def test_a_key_is_renewed_minutes_before_it_expires(role: Role) -> None:
    assert [role.at(now) for now in (0, 3200, 3301, 3400)] == ["STS.1", "STS.1", "STS.2", "STS.2"]


def test_a_failed_renewal_is_repeated_while_the_old_key_is_valid(role: Role) -> None:
    role.at(0)
    role.fails = True
    assert [role.at(now) for now in (3301, 3302, 3330)] == ["STS.1"] * 3
    assert role.fetched == 3  # Not at every call.
    role.fails = False

    assert role.at(3360) == "STS.4"


def test_a_failed_renewal_is_an_error_once_the_old_key_has_expired(role: Role) -> None:
    role.at(0)
    role.fails = True
    role.at(3590)

    with pytest.raises(Unavailable):
        role.at(3615)


def test_a_refused_key_is_replaced_at_once_and_only_once_by_all_threads(role: Role) -> None:
    role.at(0)
    old = role.keys.key()
    assert old is not None

    assert role.keys.refused(old)
    assert role.keys.refused(old)

    assert role.at(1) == "STS.2"
    assert role.fetched == 2


def test_while_a_renewal_hangs_other_threads_use_the_old_key() -> None:
    now, asked, answered = [0.0], threading.Event(), threading.Event()

    def fetch() -> tuple[AccessKey, float]:
        if now[0]:
            asked.set()
            assert answered.wait(10)
        return AccessKey(f"STS.{now[0]:.0f}", "a-secret-of-a-role", "a-session-token"), now[0] + 3600

    keys = RoleKey(fetch, now=lambda: now[0])
    old = keys.key()
    now[0] = 3301
    renewing = threading.Thread(target=keys.key)
    renewing.start()
    assert asked.wait(10)
    found: list[object] = []
    other = threading.Thread(target=lambda: found.append(keys.key()))
    other.start()
    other.join(5)
    meanwhile = [*found]
    answered.set()
    renewing.join(10)
    other.join(10)

    assert meanwhile == [old]
    renewed = keys.key()
    assert renewed is not None and renewed.id == "STS.3301"


def test_a_failed_fetch_without_a_key_counts_for_all_callers_for_some_seconds(role: Role) -> None:
    role.fails = True
    for now in (0, 1, 2):
        with pytest.raises(Unavailable, match="no answer"):
            role.at(now)
    assert role.fetched == 1
    role.fails = False

    assert role.at(4) == "STS.2"


def test_an_expired_key_is_never_used_after_a_failed_renewal(role: Role) -> None:
    role.at(0)
    role.fails = True
    role.at(3590)
    role.fails = False

    assert role.at(3601) == "STS.3"
