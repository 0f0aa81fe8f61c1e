"""The server certificate: from files that are reloaded when they change, or self-signed and generated in memory.

Writes no file, so it works with a read-only root filesystem.
"""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import pem

_LIFETIME = timedelta(days=365)
_NAME = "cloud-controller-manager"


class ServerTls:
    """TLS of one server."""

    def __init__(self, files: tuple[Path, Path] | None, address: str) -> None:
        """`files`: PEM certificate and key; None: a self-signed certificate for `address`.

        Raises InvalidConfiguration if the files do not form a pair, and OSError if one cannot be read.
        """
        self._files = files
        self._read_at = self._stamp()
        if files is None:
            self._context = _context()
            pem.load(self._context, _self_signed(address))
        else:
            self._context = _loaded(files)

    def wrap(self, connection: socket.socket) -> ssl.SSLSocket:
        """Perform the server's TLS handshake. `connection` must have a timeout. Raises OSError."""
        stamp = self._stamp()
        if self._files is not None and stamp != self._read_at:
            try:
                self._context = _loaded(self._files)
                self._read_at = stamp
            except (InvalidConfiguration, OSError):
                # The files are being replaced: keep the previous pair and try again at the next connection.
                pass
        return self._context.wrap_socket(connection, server_side=True)

    def _stamp(self) -> tuple[int, ...]:
        try:
            return tuple(path.stat().st_mtime_ns for path in self._files or ())
        except OSError:
            return ()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _loaded(files: tuple[Path, Path]) -> ssl.SSLContext:
    """A new context each time: a failed load would leave an existing one without its previous pair."""
    for path in files:
        path.read_bytes()  # ssl's own error does not name the missing file.
    context = _context()
    try:
        context.load_cert_chain(*files, password=pem.NO_PASSWORD)
    except ssl.SSLError as error:
        why = f"{files[0]} and {files[1]} are not a PEM certificate and its key ({error.reason or error})"
        raise InvalidConfiguration("tls-cert-file", why) from None
    return context


def _self_signed(address: str) -> bytes:
    """A certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    now = datetime.now(UTC)
    names = [x509.DNSName(_NAME), x509.DNSName("localhost"), x509.IPAddress(ip_address(address))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private
