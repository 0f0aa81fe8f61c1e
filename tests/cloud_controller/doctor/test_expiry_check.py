"""credential-expiry: credentials and certificates that somebody has to replace."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from cloud_controller.daemon.tls import ServerTls
from cloud_controller.doctor.checks.expiry import CHECK
from cloud_controller.doctor.findings import Result, Severity, examine
from cloud_controller.kube import DAEMON_SETS, SECRETS, ForbiddenError
from cloud_controller.manifests import EXPIRES
from local.control_plane.pki import Authority
from tests.cloud_controller.doctor.manager import (
    ARGUMENTS,
    NAME,
    NAMESPACE,
    NOW,
    cluster,
    daemon_set,
    found,
    look,
    passes,
    run,
)
from tests.fake_kubernetes import FakeKubernetes

SECRET = f"{NAME}-config"


def with_secret(expires: str) -> FakeKubernetes:
    api = cluster()
    metadata = {"name": SECRET, "namespace": NAMESPACE, "annotations": {EXPIRES: expires}}
    api.put(SECRETS, {"metadata": metadata})
    return api


def in_days(days: int) -> str:
    return f"{NOW + timedelta(days=days):%Y-%m-%d}"


def jwt(*, lives: timedelta, left: timedelta) -> str:
    claims = {"iat": (NOW + left - lives).timestamp(), "exp": (NOW + left).timestamp()}
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.sig"


ENDLESS = "e30." + base64.urlsafe_b64encode(b'{"iat": 0, "exp": 1e300}').decode() + ".sig"


@pytest.mark.parametrize(
    ("days", "severity", "when"),
    [
        (20, Severity.WARNING, "expires in 20 days"),
        (5, Severity.CRITICAL, "expires in 5 days"),
        (-1, Severity.CRITICAL, "expired"),
    ],
)
def test_a_credential_is_reported_ahead_of_its_last_day(days: int, severity: Severity, when: str) -> None:
    finding = found(CHECK, with_secret(in_days(days)))

    assert finding.subject == f"secret/{NAMESPACE}/{SECRET}"
    assert (finding.severity, finding.what) == (severity, f"its credential for the cloud {when}")


def test_a_credential_is_valid_on_its_last_day() -> None:
    assert found(CHECK, with_secret(in_days(0))).what.endswith("expires in 0 days")


def test_a_credential_with_time_left_is_no_finding() -> None:
    assert passes(CHECK, with_secret(in_days(31)))


def test_a_credential_may_be_valid_until_the_last_day_there_is() -> None:
    assert passes(CHECK, with_secret("9999-12-31"))


def test_a_secret_that_does_not_say_when_it_expires_is_no_finding() -> None:
    api = with_secret(in_days(0))
    api.change(SECRETS, f"{NAMESPACE}/{SECRET}", lambda secret: secret["metadata"].pop("annotations"))

    assert passes(CHECK, api)


def test_an_annotation_that_is_no_day_is_a_warning() -> None:
    assert found(CHECK, with_secret("soon")).evidence == (f"{EXPIRES}: 'soon'; allowed: YYYY-MM-DD",)


def test_an_option_whose_day_is_not_that_of_the_secret_is_a_warning() -> None:
    api = with_secret(in_days(90))
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, f"--credential-expires={in_days(5)}"))

    finding = found(CHECK, api)

    assert (finding.subject, finding.severity) == (f"daemonset/{NAMESPACE}/{NAME}", Severity.WARNING)
    assert finding.evidence == (f"--credential-expires={in_days(5)}; {EXPIRES}: {in_days(90)}",)


def test_an_option_is_judged_where_the_secret_has_no_annotation() -> None:
    api = cluster()
    api.put(SECRETS, {"metadata": {"name": SECRET, "namespace": NAMESPACE}})
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, f"--credential-expires={in_days(5)}"))

    assert found(CHECK, api).what == "its credential for the cloud expires in 5 days"


def test_an_option_with_the_day_of_the_secret_is_no_finding() -> None:
    api = with_secret(in_days(90))
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, f"--credential-expires={in_days(90)}"))

    assert passes(CHECK, api)


def unreadable_secret(*arguments: str) -> FakeKubernetes:
    api = with_secret(in_days(0))
    api.put(DAEMON_SETS, daemon_set(*ARGUMENTS, *arguments))
    api.before.append(lambda request: _forbid() if request.resource == SECRETS else None)
    return api


def test_a_secret_that_may_not_be_read_is_not_checked() -> None:
    assert run(CHECK, unreadable_secret()).not_done == "cannot get secrets"


def test_without_a_secret_the_token_is_still_checked() -> None:
    api = unreadable_secret()
    api.bearer = jwt(lives=timedelta(days=365), left=timedelta(days=-1))

    assert [each.what for each in run(CHECK, api).findings] == ["the token of the kubeconfig expired"]


def test_the_daemons_option_stands_in_for_a_secret_that_may_not_be_read() -> None:
    finding = found(CHECK, unreadable_secret(f"--credential-expires={in_days(5)}"))

    assert finding.subject == f"daemonset/{NAMESPACE}/{NAME}"
    assert finding.what == "its credential for the cloud expires in 5 days"


def _forbid() -> None:
    raise ForbiddenError(403, "Forbidden", "cannot get secrets")


def test_a_long_lived_token_is_reported_before_it_expires() -> None:
    api = cluster()
    api.bearer = jwt(lives=timedelta(days=365), left=timedelta(days=20, hours=1))

    finding = found(CHECK, api)

    assert (finding.severity, finding.what) == (Severity.WARNING, "the token of the kubeconfig expires in 20 days")


@pytest.mark.parametrize(
    "token",
    [None, "opaque", "a.b.c", jwt(lives=timedelta(hours=1), left=timedelta(minutes=5)), ENDLESS],
    ids=["none", "opaque", "no claims", "short-lived", "endless"],
)
def test_other_tokens_are_no_finding(token: str | None) -> None:
    api = cluster()
    api.bearer = token

    assert passes(CHECK, api)


def with_client_certificate(lives: timedelta, passed: timedelta) -> Result:
    """A look at a cluster whose kubeconfig has a certificate that was made so long ago."""
    api = cluster()
    api.client_certificate = Authority.create("ca").issue_client("admin", ttl=lives).certificate.encode()
    seen = look(api)
    seen.now = datetime.now(UTC) + passed
    return examine([CHECK], seen)[0]


def test_a_client_certificate_of_the_kubeconfig_is_reported_before_it_expires() -> None:
    (finding,) = with_client_certificate(timedelta(days=365), timedelta(days=350)).findings

    assert finding.what == "the client certificate of the kubeconfig expires in 14 days"
    assert finding.severity is Severity.WARNING


def test_a_client_certificate_that_something_renews_is_no_finding() -> None:
    assert with_client_certificate(timedelta(hours=1), timedelta(minutes=50)).passed


@pytest.fixture
def port() -> Iterator[int]:
    """A server whose certificate is valid for a year from now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        tls = ServerTls(None, "127.0.0.1")

        def serve() -> None:
            connection, _ = server.accept()
            connection.settimeout(10)
            with tls.wrap(connection):
                pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(server.getsockname()[1])
        thread.join()


def at(port: int, days: float) -> Result:
    api = cluster()
    api.server = f"https://127.0.0.1:{port}"
    seen = look(api)
    seen.now = datetime.now(UTC) + timedelta(days=days)
    return examine([CHECK], seen)[0]


def test_a_certificate_of_the_api_server_with_time_left_is_no_finding(port: int) -> None:
    result = at(port, days=0)

    assert (result.findings, result.not_done) == ((), None)


@pytest.mark.parametrize(
    ("days", "severity"), [(345, Severity.WARNING), (360, Severity.CRITICAL), (370, Severity.CRITICAL)]
)
def test_a_certificate_of_the_api_server_is_reported_ahead(port: int, days: int, severity: Severity) -> None:
    [finding] = at(port, days).findings

    assert finding.severity is severity
    assert f"the API server's certificate at 127.0.0.1:{port}" in finding.what


def test_an_api_server_that_cannot_be_reached_directly_is_not_checked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])

    assert "cannot read the certificate" in (at(port, days=0).not_done or "")
