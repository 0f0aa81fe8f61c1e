"""Certificates have the right holder, validity and addresses; keys stay private."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local.control_plane import credentials, pki
from local.control_plane.components import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path / "c", "10.16.1.1", IPv4Network("10.20.0.0/16"), IPv4Network("10.18.0.0/18"), "test")
    credentials.write_credentials(made)
    return made


def test_a_client_certificate_has_user_groups_and_expiry() -> None:
    pair = pki.Authority.create("ca").issue_client("jane", ["team:a", "team:b"], ttl=timedelta(minutes=10))

    certificate = parse(pair)
    assert common_name(certificate) == "jane"
    organizations = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [attribute.value for attribute in organizations] == ["team:a", "team:b"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    remaining = certificate.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(minutes=9) < remaining <= timedelta(minutes=10)


def test_the_api_server_is_valid_under_every_name_that_a_client_dials(layout: Layout) -> None:
    certificate = x509.load_pem_x509_certificate(layout.certificate("kube-apiserver").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"10.16.1.1", "127.16.1.1", "10.18.0.1", "127.18.0.1"}
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)


def test_a_kubeconfig_holds_a_pair_that_belongs_together_and_the_clusters_ca(layout: Layout, tmp_path: Path) -> None:
    config = yaml.safe_load(credentials.issue_kubeconfig(layout, "jane", ["viewers"], timedelta(hours=1)))

    user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.16.1.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == layout.certificate("ca").read_bytes()
    (tmp_path / "c.crt").write_bytes(base64.b64decode(user["client-certificate-data"]))
    (tmp_path / "c.key").write_bytes(base64.b64decode(user["client-key-data"]))
    ssl.create_default_context().load_cert_chain(tmp_path / "c.crt", tmp_path / "c.key")


def test_the_cas_and_the_token_key_are_made_once_and_everything_else_is_signed_again(layout: Layout) -> None:
    before = {path.name: path.read_bytes() for path in layout.pki.iterdir()}

    credentials.write_credentials(layout)

    after = {path.name: path.read_bytes() for path in layout.pki.iterdir()}
    kept = {name for name in before if before[name] == after[name]}
    assert kept == {
        *("ca.crt", "ca.key", "etcd-ca.crt", "etcd-ca.key", "kubelet-client-ca.crt", "kubelet-client-ca.key"),
        *("service-account.crt", "service-account.key"),
    }


def test_written_keys_are_private_and_not_shown_in_a_representation(layout: Layout) -> None:
    pair = pki.Authority.create("ca").issue_client("jane")

    assert {path.stat().st_mode & 0o077 for path in layout.pki.iterdir()} == {0}
    assert "PRIVATE" not in repr(pair)


def parse(pair: pki.KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def common_name(certificate: x509.Certificate) -> str:
    (attribute,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(attribute.value)
