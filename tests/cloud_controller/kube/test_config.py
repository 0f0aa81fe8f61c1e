"""Kubeconfigs and service accounts: what is read, and what is refused with a word on why."""

from __future__ import annotations

import base64
import copy
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cloud_controller.kube import KubeconfigError
from cloud_controller.kube.config import Connection, from_kubeconfig, in_cluster

DOCUMENT: dict[str, Any] = {
    "current-context": "x",
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.16.0.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "secret-token"}}],
}
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws"}


def load(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any) -> Connection:
    document = copy.deepcopy(DOCUMENT) | more
    document["clusters"][0]["cluster"] |= cluster or {}
    if user is not None:
        document["users"][0]["user"] = user
    return from_kubeconfig(yaml.safe_dump(document))


def certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def test_server_and_token_come_from_the_current_context() -> None:
    connection = load()

    assert connection.server == "https://127.16.0.1:6443"
    assert connection.token is not None
    assert connection.token() == "secret-token"


def test_a_servers_path_is_part_of_its_url() -> None:
    """As of Rancher, where the cluster's own API is below it and that of another cluster at the root."""
    assert load({"server": "https://127.16.0.1/k8s/clusters/c-1/"}).server == "https://127.16.0.1:443/k8s/clusters/c-1"


def test_a_server_with_an_ipv6_address_is_shown_as_a_url() -> None:
    assert load({"server": "https://[fd00::1]:6443"}).server == "https://[fd00::1]:6443"


def test_a_token_file_precedes_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-file\n")

    connection = load(user={"token": "older-token", "tokenFile": str(tmp_path / "token")})

    assert connection.token is not None
    assert connection.token() == "of-the-file"


def test_another_context_can_be_named() -> None:
    contexts = [*DOCUMENT["contexts"], {"name": "y", "context": {"cluster": "c", "user": "nobody"}}]

    with pytest.raises(
        KubeconfigError, match="users in the kubeconfig has no entry with the name in the context's user"
    ):
        from_kubeconfig(yaml.safe_dump({**DOCUMENT, "contexts": contexts}), context="y")


def test_the_namespace_is_the_contexts_or_default() -> None:
    context = {"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}

    assert from_kubeconfig(yaml.safe_dump({**DOCUMENT, "contexts": [context]})).namespace == "shop"
    assert load().namespace == "default"


def test_a_client_certificate_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    public, private = certificate()

    connection = load(user={"client-certificate-data": encoded(public), "client-key-data": encoded(private)})

    assert connection.tls is not None
    assert list(tmp_path.iterdir()) == []


def test_an_encrypted_client_key_is_refused_and_nobody_is_asked_for_its_password() -> None:
    public, private = certificate()
    encrypted = serialization.load_pem_private_key(private, None).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"a-password"),
    )

    with pytest.raises(KubeconfigError, match="not a valid PEM pair"):
        load(user={"client-certificate-data": encoded(public), "client-key-data": encoded(encrypted)})


def test_relative_file_names_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    public, private = certificate()
    (tmp_path / "u.crt").write_bytes(public)
    (tmp_path / "u.key").write_bytes(private)
    document = copy.deepcopy(DOCUMENT)
    document["users"][0]["user"] = {"client-certificate": "u.crt", "client-key": "u.key"}

    connection = from_kubeconfig(yaml.safe_dump(document), directory=tmp_path)

    assert (connection.certificate, connection.token) == (public, None)


def test_a_connection_shows_no_secret() -> None:
    assert "secret-token" not in repr(load())


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "empty"),
        ("a: [", r"not valid YAML \(line 1\)"),
        ("users: [{name: u, user: {token: 'secret-token}}]", "not valid YAML"),
        ("{}", "no current-context"),
        ("current-context: z\ncontexts: secret-token", "contexts in the kubeconfig is not a list"),
        ("current-context: z\ncontexts: [secret-token]", r"contexts\[0\] in the kubeconfig is not a mapping"),
        ("current-context: z\ncontexts: [{name: z, context: secret-token}]", r"contexts\[0\].context .*not a mapping"),
        ("current-context: 2024-99-99", "not valid YAML"),
        ("current-context: !!bool secret-token", "not valid YAML"),
        ("current-context: z", "contexts in the kubeconfig has no entry with the name in current-context"),
    ],
)
def test_a_broken_kubeconfig_is_refused_without_quoting_it(text: str, why: str) -> None:
    with pytest.raises(KubeconfigError, match=why) as error:
        from_kubeconfig(text)

    assert "secret-token" not in str(error.value)


@pytest.mark.parametrize(
    "cluster, user, why",
    [
        ({"server": "127.16.0.1:6443"}, None, "is not a URL"),
        ({"server": "https://127.16.0.1:6443/a b"}, None, "is not a URL"),
        ({"insecure-skip-tls-verify": True}, None, "insecure-skip-tls-verify is not supported"),
        ({"proxy-url": "http://127.0.0.1:3128"}, None, "proxy-url is not supported"),
        ({"certificate-authority-data": "*"}, None, "certificate-authority-data is not valid base64"),
        ({"certificate-authority-data": "eA=="}, None, "is not a valid PEM"),
        (
            {"certificate-authority": "/nowhere"},
            None,
            "cannot read the file of certificate-authority: No such file or directory$",
        ),
        (None, {"token": "secret-token", "as": "somebody"}, r"users\[\].user.as is not supported"),
        (
            None,
            {"exec": {"command": "aws"}},
            "user.exec.apiVersion is not supported; allowed: client.authentication",
        ),
        (None, {"exec": {**EXEC, "env": ["A=b"]}}, "user.exec.env is not a list of name and value pairs"),
        (None, {"exec": {**EXEC, "args": "get-token"}}, "user.exec.args is not a list"),
        (None, {"exec": "secret-token"}, r"users\[\].user.exec in the kubeconfig is not a mapping"),
        (None, {"token": ["secret-token"]}, r"users\[\].user.token in the kubeconfig is not a string"),
        (None, {"tokenFile": 5}, r"users\[\].user.tokenFile in the kubeconfig is not a string"),
        ({"server": "https://127.16.0.1:99999"}, None, "server is not a URL"),
        ({"server": "https://[::1"}, None, "server is not a URL"),
        ({"tls-server-name": 5}, None, "tls-server-name in the kubeconfig is not a string"),
        (None, {"client-certificate-data": "eA=="}, "client-key must be set together"),
        (None, {"client-certificate-data": "eA==", "client-key-data": "eA=="}, "not a valid PEM pair"),
    ],
)
def test_an_unusable_kubeconfig_field_is_named(
    cluster: dict[str, Any] | None, user: dict[str, Any] | None, why: str
) -> None:
    with pytest.raises(KubeconfigError, match=why):
        load(cluster, user)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "ca.crt").write_bytes(certificate()[0])
    (tmp_path / "token").write_text("first\n")
    return tmp_path


ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "127.2.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_finds_the_server_in_its_environment_and_its_token_in_a_file(account: Path) -> None:
    connection = in_cluster(account, ENVIRONMENT)

    assert connection.server == "https://127.2.0.1:443"
    assert connection.token is not None
    assert connection.token() == "first"


def test_a_pods_namespace_is_that_of_its_service_account_or_default(account: Path) -> None:
    assert in_cluster(account, ENVIRONMENT).namespace == "default"

    (account / "namespace").write_text("shop")

    assert in_cluster(account, ENVIRONMENT).namespace == "shop"


def test_the_service_accounts_directory_can_be_set_by_the_environment(account: Path) -> None:
    connection = in_cluster(None, {**ENVIRONMENT, "KUBERNETES_SERVICE_ACCOUNT_DIR": str(account)})

    assert connection.token is not None
    assert connection.token() == "first"


def test_a_token_is_read_again_after_a_minute(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("cloud_controller.kube.config.time", SimpleNamespace(monotonic=lambda: now))
    token = in_cluster(account, ENVIRONMENT).token
    assert token is not None
    (account / "token").write_text("second")

    before = token()
    now += 61
    after = token()

    assert (before, after) == ("first", "second")


def test_outside_a_pod_the_error_advises_a_kubeconfig(account: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"KUBERNETES_SERVICE_HOST is not set.*use a kubeconfig"):
        in_cluster(account, {})


def test_a_missing_service_account_token_is_an_error_at_once(account: Path) -> None:
    (account / "token").unlink()

    with pytest.raises(KubeconfigError, match="cannot read the token file"):
        in_cluster(account, ENVIRONMENT)
