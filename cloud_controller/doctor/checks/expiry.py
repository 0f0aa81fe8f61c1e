"""Whether credentials and certificates that somebody has to replace are about to expire."""

from __future__ import annotations

import base64
import binascii
import json
import socket
import ssl
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen, Unreadable
from cloud_controller.kube import SECRETS, key
from cloud_controller.manifests import CREDENTIAL_EXPIRES, EXPIRES

_SOON, _VERY_SOON = timedelta(days=30), timedelta(days=7)
_RENEWED = timedelta(days=30)
"""A token or client certificate with a shorter life is made anew by something."""
_TIMEOUT = 5.0


def _run(seen: Seen) -> Iterator[Finding]:
    unread = yield from _secrets(seen)
    if (ends := _token_ends(seen.kube().token())) is not None:
        yield from _judged(seen, "", "the token of the kubeconfig", ends, "put a new token into the kubeconfig")
    if (pem := seen.kube().certificate()) is not None and (ends := _certificate_ends(pem)) is not None:
        what = "the client certificate of the kubeconfig"
        yield from _judged(seen, "", what, ends, "issue a new one, and put it with its key into the kubeconfig")
    url = urlsplit(seen.kube().server)
    if url.scheme == "https":
        host, port = url.hostname or "", url.port or 443
        ends = seen.once(("certificate", host, port), lambda: certificate_ends(host, port))
        what = f"the API server's certificate at {host}:{port}"
        yield from _judged(seen, "", what, ends, "renew it (kubeadm: kubeadm certs renew all), and restart it")
    if unread is not None:
        raise unread


def _secrets(seen: Seen) -> Generator[Finding, None, Unreadable | None]:
    """About those that the CCM's pods mount; returns why one's day is not known. Not everybody may read Secrets: the
    daemon's option repeats the day of its cloud config."""
    workload, space = seen.workload(), seen.target.namespace
    volumes = workload["spec"]["template"]["spec"].get("volumes") or () if workload else ()
    option = seen.argument(CREDENTIAL_EXPIRES) if workload else None
    days, unread = list[str](), None
    for name in (each["secret"]["secretName"] for each in volumes if "secret" in each):
        try:
            secret = seen.get(SECRETS, name, space) or {}
        except Unreadable as error:
            unread = error
            continue
        if given := (secret.get("metadata", {}).get("annotations") or {}).get(EXPIRES):
            days.append(given)
            yield from _by_day(seen, f"secret/{space}/{name}", "annotation", EXPIRES, given)
    if not workload or not option:
        return unread
    subject = f"{workload['kind'].lower()}/{key(workload)}"
    if unread is not None or not days:
        yield from _by_day(seen, subject, "option", CREDENTIAL_EXPIRES, option)
    elif option not in days:
        yield Finding(
            subject=subject,
            what=f"its option {CREDENTIAL_EXPIRES} is not the day of the Secret's annotation",
            evidence=(f"{CREDENTIAL_EXPIRES}={option}; {EXPIRES}: {', '.join(days)}",),
            remedy="set both to the credential's last day: the alerts follow the option",
            severity=Severity.WARNING,
        )
    return None


def _by_day(seen: Seen, subject: str, kind: str, named: str, given: str) -> Iterator[Finding]:
    try:
        # The day is the last on which it is valid.
        ends = datetime.fromisoformat(given).replace(hour=23, minute=59, second=59, tzinfo=UTC)
    except ValueError:
        yield Finding(
            subject=subject,
            what=f"its {kind} {named} is not a day",
            evidence=(f"{named}: {given!r}; allowed: YYYY-MM-DD",),
            remedy=f"correct the {kind}",
            severity=Severity.WARNING,
        )
        return
    remedy = f"put a new credential into the Secret, and set the {kind} to its last day"
    yield from _judged(seen, subject, "its credential for the cloud", ends, remedy)


def _judged(seen: Seen, subject: str, what: str, ends: datetime, remedy: str) -> Iterator[Finding]:
    left = ends - seen.now
    if left >= _SOON:
        return
    when = "expired" if left < timedelta(0) else f"expires in {left.days} days"
    yield Finding(
        subject=subject,
        what=f"{what} {when}",
        evidence=(f"valid until {ends.astimezone(UTC):%Y-%m-%d %H:%M} UTC",),
        remedy=remedy,
        severity=Severity.CRITICAL if left < _VERY_SOON else Severity.WARNING,
    )


def _token_ends(token: str | None) -> datetime | None:
    """When a long-lived JWT ends; None for other tokens, and for those that something renews."""
    parts = (token or "").split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        issued, ends = (datetime.fromtimestamp(float(claims[claim]), UTC) for claim in ("iat", "exp"))
    except (binascii.Error, ValueError, LookupError, TypeError, OverflowError):
        return None
    return ends if ends - issued > _RENEWED else None


def _certificate_ends(pem: bytes) -> datetime | None:
    """When a long-lived client certificate ends; None for one that something renews."""
    from cryptography import x509  # Costs every start of the command a tenth of its time.

    certificate = x509.load_pem_x509_certificate(pem)
    ends = certificate.not_valid_after_utc
    return ends if ends - certificate.not_valid_before_utc > _RENEWED else None


def certificate_ends(host: str, port: int) -> datetime:
    """When the certificate that a server shows is no longer valid. Raises Unreadable."""
    from cryptography import x509  # Costs every start of the command a tenth of its time.

    # Nothing is sent: an expired certificate, or one of an unknown CA, is to be read too.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), _TIMEOUT) as connection,
            context.wrap_socket(connection, server_hostname=host) as secured,
        ):
            shown = secured.getpeercert(binary_form=True)
    except OSError as error:
        raise Unreadable(f"cannot read the certificate of {host}:{port}: {error}") from error
    if shown is None:
        raise Unreadable(f"{host}:{port} shows no certificate")
    return x509.load_der_x509_certificate(shown).not_valid_after_utc


CHECK = Check(
    name="credential-expiry",
    holds="the cloud's credential, the kubeconfig's token or certificate, and the API server's certificate are valid "
    "for 30 days more",
    why="once it has expired, every call that uses it is refused",
    lines=("11.4.7", "11.3.2"),
    page="runbooks/credential-expiry.md",
    run=_run,
    after=frozenset({"api-server"}),
)
