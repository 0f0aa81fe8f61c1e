"""The keys and certificates of one control plane: two CAs, serving and client certificates, the ServiceAccount key.

etcd has a CA of its own: the holder of a certificate of the cluster's CA (each node has one) must not reach etcd. Keys
are EC P-256, which take a millisecond where RSA takes a second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
# Clocks differ slightly; a certificate signed a moment ago must be valid everywhere.
BACKDATE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "KeyPair(certificate=..., key=***)"


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs the certificates of servers and clients."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, common_name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        certificate = (
            _builder(name, name, key.public_key(), CA_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(key_cert_sign=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load_or_create(cls, directory: Path, stem: str, common_name: str) -> Authority:
        """The CA in `directory`/`stem`.crt and .key, created if the certificate does not exist."""
        certificate_file, key_file = directory / f"{stem}.crt", directory / f"{stem}.key"
        if not certificate_file.exists():
            authority = cls.create(common_name)
            # The certificate last: its existence means that both exist.
            write_private(key_file, _key_pem(authority.key))
            write_private(certificate_file, authority.pem)
            return authority
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{key_file} does not contain an EC key")
        return cls(x509.load_pem_x509_certificate(certificate_file.read_bytes()), key)

    @property
    def pem(self) -> str:
        """The CA's certificate, for verification."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue_server(
        self, common_name: str, sans: Sequence[str], *, client: bool = False, ttl: timedelta = LEAF_LIFETIME
    ) -> KeyPair:
        """A serving certificate for DNS names and addresses; `client` also lets it authenticate (etcd's peers)."""
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if client else [])]
        return self._issue(_name(common_name), usages, ttl, sans)

    def issue_client(self, user: str, groups: Sequence[str] = (), *, ttl: timedelta = LEAF_LIFETIME) -> KeyPair:
        """A client certificate that Kubernetes reads as this user in these groups."""
        return self._issue(_name(user, groups), [ExtendedKeyUsageOID.CLIENT_AUTH], ttl)

    def _issue(
        self, subject: x509.Name, usages: list[x509.ObjectIdentifier], ttl: timedelta, sans: Sequence[str] = ()
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self.certificate.subject, key.public_key(), ttl)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if sans:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(san) for san in sans]), critical=False
            )
        certificate = builder.sign(self.key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), _key_pem(key))


def create_signing_key() -> tuple[str, str]:
    """A private and a public key (PEM) for ServiceAccount tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _key_pem(key), public.decode()


def write_pair(directory: Path, stem: str, pair: KeyPair) -> None:
    """Write `stem`.crt and `stem`.key, readable only by this user."""
    write_private(directory / f"{stem}.key", pair.key)
    write_private(directory / f"{stem}.crt", pair.certificate)


def write_private(path: Path, text: str) -> None:
    """Write a file with mode 0600 atomically."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, ttl: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + ttl)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _general_name(san: str) -> x509.GeneralName:
    try:
        address = ip_address(san)
    except ValueError:
        return x509.DNSName(san)
    return x509.IPAddress(IPv4Address(str(address)))


def _key_usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
