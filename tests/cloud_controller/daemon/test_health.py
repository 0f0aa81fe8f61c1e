"""What the daemon answers over HTTPS, and to whom."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import urllib3
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.daemon.health import HealthServer
from cloud_controller.daemon.options import Serving
from cloud_controller.daemon.reviews import KEPT, Reviews
from cloud_controller.daemon.tls import ServerTls
from cloud_controller.kube import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Object, UnreachableError
from tests.fake_kubernetes import FakeKubernetes

pytestmark = pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")

ADDRESS = "127.0.0.1"
HTTP = urllib3.PoolManager(cert_reqs="CERT_NONE", timeout=60, retries=False)


def api_server() -> FakeKubernetes:
    """It knows the token `good`, whose user may get /metrics alone."""

    def who(review: Object) -> Object:
        known = review["spec"]["token"] == "good"
        return {"status": {"authenticated": known, "user": {"username": "prometheus", "groups": ["g"]}}}

    def may(review: Object) -> Object:
        spec = review["spec"]
        assert (spec["user"], spec["groups"]) == ("prometheus", ["g"])
        return {"status": {"allowed": spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}}}

    api = FakeKubernetes()
    api.reviews = {TOKEN_REVIEWS: who, SUBJECT_ACCESS_REVIEWS: may}
    return api


class Daemon:
    trouble: str | None = None


@dataclass
class Site:
    server: HealthServer
    daemon: Daemon
    api: FakeKubernetes

    def get(self, path: str, token: str | None = None) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = HTTP.request("GET", f"https://{ADDRESS}:{self.server.port}{path}", headers=headers)
        return answer.status, answer.data.decode()


@pytest.fixture
def serve() -> Iterator[Callable[..., Site]]:
    started: list[HealthServer] = []

    def serve(*, protected: bool = False, open_paths: tuple[str, ...] = ("/healthz", "/readyz", "/livez")) -> Site:
        daemon, api = Daemon(), api_server()
        server: Any = HealthServer(
            Serving(ADDRESS, 0, protected=protected, open_paths=open_paths, configuration={"secure-port": 1}),
            {"ping": lambda: None, "controller-node": lambda: None},
            {"controller-node": lambda: daemon.trouble, "state": lambda: None},
            lambda: b"up 1\n",
            Reviews(api, api),
        )
        server.start()
        started.append(server)
        return Site(server, daemon, api)

    yield serve
    for server in started:
        server.stop()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/healthz/controller-node", "/readyz/state"])
def test_all_is_well(serve: Callable[..., Site], path: str) -> None:
    assert serve().get(path) == (200, "ok")


def test_a_controller_in_trouble_makes_the_daemon_not_ready_but_not_unhealthy(serve: Callable[..., Site]) -> None:
    site = serve()
    site.daemon.trouble = "Unavailable: the cloud does not answer"

    told = "[-]controller-node Unavailable: the cloud does not answer\n"
    assert site.get("/readyz") == (503, f"{told}[+]state ok\n")
    assert site.get("/readyz/controller-node") == (503, told)
    assert site.get("/readyz/state") == (200, "ok")
    assert site.get("/readyz?exclude=controller-node") == (200, "ok")
    assert site.get("/healthz") == (200, "ok")

    site.daemon.trouble = None
    assert site.get("/readyz") == (200, "ok")


def test_verbose_tells_each_check(serve: Callable[..., Site]) -> None:
    assert serve().get("/healthz?verbose") == (200, "[+]ping ok\n[+]controller-node ok\n")


def test_metrics_and_the_configuration_are_served_and_other_paths_are_not(serve: Callable[..., Site]) -> None:
    site = serve()

    assert site.get("/metrics") == (200, "up 1\n")
    status, text = site.get("/configz")
    assert (status, json.loads(text)) == (200, {"cloudcontrollermanager.config.k8s.io": {"secure-port": 1}})
    for path in ("/secrets", "/healthz/nothing", "/"):
        assert site.get(path)[0] == 404


def test_plain_http_is_not_spoken(serve: Callable[..., Site]) -> None:
    site = serve()

    with pytest.raises(urllib3.exceptions.HTTPError):
        urllib3.request("GET", f"http://{ADDRESS}:{site.server.port}/healthz", retries=False, timeout=10)
    assert site.get("/healthz") == (200, "ok")


def test_a_client_that_says_nothing_holds_up_nobody(serve: Callable[..., Site]) -> None:
    site = serve()
    with urllib3.util.connection.create_connection((ADDRESS, site.server.port)):
        assert site.get("/healthz") == (200, "ok")


# ------------------------------------------------------------------------------------------------- who may read what


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("bad", 401), ("good", 200)])
def test_beyond_loopback_metrics_are_for_users_whom_the_api_server_knows_and_allows(
    serve: Callable[..., Site], token: str | None, status: int
) -> None:
    assert serve(protected=True).get("/metrics", token)[0] == status


def test_a_user_who_may_get_metrics_may_not_get_the_configuration(serve: Callable[..., Site]) -> None:
    assert serve(protected=True).get("/configz", "good")[0] == 403


def test_probes_need_no_token_beyond_loopback_either(serve: Callable[..., Site]) -> None:
    site = serve(protected=True)

    for path in ("/healthz", "/healthz/ping", "/readyz", "/livez"):
        assert site.get(path)[0] == 200
    assert site.api.requests == []


def test_a_path_that_is_not_said_to_be_open_is_not(serve: Callable[..., Site]) -> None:
    site = serve(protected=True, open_paths=("/livez",))

    assert site.get("/healthz")[0] == 401
    assert site.get("/livezzz")[0] == 401


def test_where_nothing_is_said_to_be_open_nothing_is(serve: Callable[..., Site]) -> None:
    site = serve(protected=True, open_paths=())

    assert {site.get(path)[0] for path in ("/livez", "/metrics", "/")} == {401}


def test_nobody_is_let_in_while_the_api_server_can_not_be_asked(serve: Callable[..., Site]) -> None:
    site = serve(protected=True)
    site.api.fail(UnreachableError("the API server is down"))

    assert site.get("/metrics", "good")[0] == 503


def test_an_answer_of_the_api_server_is_kept_for_ten_seconds() -> None:
    api, now = api_server(), [0.0]
    reviews = Reviews(api, api, clock=lambda: now[0])

    for seconds in (0.0, KEPT - 0.1):
        now[0] = seconds
        assert reviews.status("good", "/metrics") == 200
    assert api.writes == ["create tokenreviews", "create subjectaccessreviews"]

    now[0] = KEPT
    assert reviews.status("good", "/metrics") == 200
    assert len(api.writes) == 4


# ------------------------------------------------------------------------------------------------------------ TLS


def pair(directory: Path, name: str) -> tuple[Path, Path]:
    """A certificate and its key as files, made for the common name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    certificate, private = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(*encoding))
    return certificate, private


def served_name(port: int) -> str:
    shown = x509.load_pem_x509_certificate(ssl.get_server_certificate((ADDRESS, port)).encode())
    return str(shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def test_without_files_a_certificate_is_made_that_names_the_address(serve: Callable[..., Site]) -> None:
    port = serve().server.port
    shown = x509.load_pem_x509_certificate(ssl.get_server_certificate((ADDRESS, port)).encode())
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert served_name(port) == "cloud-controller-manager"
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == [ADDRESS]


def test_files_that_are_replaced_are_served_without_a_restart(tmp_path: Path) -> None:
    files = pair(tmp_path, "first")
    api = FakeKubernetes()
    server = HealthServer(Serving(ADDRESS, 0, certificate=files), {}, {}, bytes, Reviews(api, api))
    server.start()
    try:
        assert served_name(server.port) == "first"
        pair(tmp_path, "second")
        assert served_name(server.port) == "second"
        key = files[1].read_text()
        files[1].write_text("half of a ke")
        assert served_name(server.port) == "second"
        pair(tmp_path, "third")
        files[1].write_text(key)
        assert served_name(server.port) == "second", "the third's key is not there yet"
    finally:
        server.stop()


def test_files_that_are_no_pair_are_told_at_the_start(tmp_path: Path) -> None:
    certificate, key = pair(tmp_path, "x")
    key.write_text("no key")

    with pytest.raises(InvalidConfiguration, match=r"tls-cert-file: .* are not a PEM certificate and its key"):
        ServerTls((certificate, key), ADDRESS)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ServerTls((certificate, tmp_path / "nowhere"), ADDRESS)


# -------------------------------------------------------------------------------------------------------- addresses


def test_a_port_that_is_taken_is_an_error_at_once(serve: Callable[..., Site]) -> None:
    api = FakeKubernetes()
    port = serve().server.port

    with pytest.raises(OSError, match=f"cannot listen on {ADDRESS} port {port}: Address already in use"):
        HealthServer(Serving(ADDRESS, port), {}, {}, bytes, Reviews(api, api))


def test_it_can_be_bound_to_an_ipv6_address() -> None:
    api = FakeKubernetes()
    try:
        found = HealthServer(Serving("::1", 0), {"ping": lambda: None}, {}, bytes, Reviews(api, api))
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    found.start()
    try:
        answer = HTTP.request("GET", f"https://[::1]:{found.port}/livez")
    finally:
        found.stop()

    assert answer.data == b"ok"
