"""CLB: server certificates, and the further certificates of an HTTPS listener by domain."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from cryptography import x509

from local.alicloud.account import Account, as_text
from local.alicloud.checks import has_tags, shown_tags, tags_of
from local.alicloud.clb_balancers import EXTENSION, INVALID, LISTENER, balancer_of
from local.alicloud.products import SLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

CERTIFICATE: Final = "certificate"


@SLB.action("UploadServerCertificate", "ResourceGroupId")
def upload_server_certificate(account: Account, arguments: Arguments) -> dict[str, Any]:
    """A certificate in PEM with its key. The key is not kept."""
    if "ServerCertificate" not in arguments or "PrivateKey" not in arguments:
        message = "The specified parameter ServerCertificate or Key is empty."
        raise Refusal(400, INVALID, message)
    try:
        parsed = x509.load_pem_x509_certificate(arguments["ServerCertificate"].encode())
    except ValueError:
        raise Refusal(400, "KeyFormatError", "The specified ServerCertificate is incorrectly formatted.") from None
    if "PRIVATE KEY" not in arguments["PrivateKey"]:
        raise Refusal(400, INVALID, "The specified parameter key format is error.")
    body = add_certificate(account, arguments.get("ServerCertificateName", ""))
    names = parsed.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    body = account.fill(
        CERTIFICATE,
        body["id"],
        common_name=str(names[0].value) if names else "",
        expires=parsed.not_valid_after_utc.timestamp(),
        fingerprint=hashlib.sha1(arguments["ServerCertificate"].encode(), usedforsecurity=False).hexdigest(),
        tags=tags_of(arguments.get("Tag", []), account.quotas.tags),
    )
    return {name: value for name, value in _shown(account, body).items() if name != "Tags"}


@SLB.action("DescribeServerCertificates")
def describe_server_certificates(account: Account, arguments: Arguments) -> dict[str, Any]:
    """All, or by id and tags."""
    found = account.store.all(CERTIFICATE)
    if "ServerCertificateId" in arguments:
        found = [each for each in found if each["id"] == arguments["ServerCertificateId"]]
    tags = arguments.get("Tag", [])  # Read even if nothing is there to have them.
    found = [each for each in found if has_tags(each["tags"], tags)]
    return {"ServerCertificates": {"ServerCertificate": [_shown(account, each) for each in found]}}


@SLB.action("DeleteServerCertificate")
def delete_server_certificate(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Refused while a listener uses it."""
    asked = arguments["ServerCertificateId"]
    certificate_of(account, asked)
    users = [each["config"].get("ServerCertificateId") for each in account.store.all(LISTENER)]
    if asked in (*users, *(each["ServerCertificateId"] for each in account.store.all(EXTENSION))):
        raise Refusal(400, "CertificateAndPrivateKeyIsRefered", "Certificate and PrivateKey Is Refered.")
    account.store.remove(CERTIFICATE, asked)
    return {}


@SLB.action("CreateDomainExtension")
def create_domain_extension(account: Account, arguments: Arguments) -> dict[str, Any]:
    """The certificate of a domain of an HTTPS listener."""
    listener = _https(account, arguments)
    domain, certificate = arguments["Domain"], arguments.get("ServerCertificateId", "")
    if not certificate:
        raise Refusal(400, "MissingParam.ServerCertificateId", "ServerCertificateId must be given.")
    certificate_of(account, certificate)
    if any(each["Domain"] == domain for each in _extensions(account, listener)):
        raise Refusal(400, "DomainExist", f"The domain {domain} has an extension already.")
    new = account.new_id("de")
    body = {"id": new, "balancer": listener["balancer"], "listener": listener["id"], "Domain": domain}
    account.store.put(EXTENSION, new, body | {"DomainExtensionId": new, "ServerCertificateId": certificate})
    return {"DomainExtensionId": new, "ListenerPort": listener["port"]}


@SLB.action("DescribeDomainExtensions")
def describe_domain_extensions(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Of one listener."""
    found = _extensions(account, _https(account, arguments))
    if "DomainExtensionId" in arguments:
        found = [each for each in found if each["id"] == arguments["DomainExtensionId"]]
    names = ("DomainExtensionId", "Domain", "ServerCertificateId")
    return {"DomainExtensions": {"DomainExtension": [{name: each[name] for name in names} for each in found]}}


@SLB.action("SetDomainExtensionAttribute")
def set_domain_extension_attribute(account: Account, arguments: Arguments) -> dict[str, Any]:
    """Another certificate."""
    extension = _extension(account, arguments)
    certificate = certificate_of(account, arguments.get("ServerCertificateId", ""))
    account.fill(EXTENSION, extension["id"], ServerCertificateId=certificate["id"])
    return {}


@SLB.action("DeleteDomainExtension")
def delete_domain_extension(account: Account, arguments: Arguments) -> dict[str, Any]:
    """One of them."""
    account.store.remove(EXTENSION, _extension(account, arguments)["id"])
    return {}


def add_certificate(account: Account, name: str = "", id: str = "") -> Object:
    """Put a certificate into the account, past the API: its contents are of no interest."""
    new = id or f"{account.store.next_number('id'):016x}-{account.region}"
    body = {
        "id": new,
        "name": name or new,
        "common_name": "",
        "fingerprint": "",
        "expires": account.clock() + 365 * 86400,
        "made": account.clock(),
        "tags": {},
    }
    account.store.put(CERTIFICATE, new, body)
    return body


def certificate_of(account: Account, id: str) -> Object:
    """The certificate with this id."""
    missing = Refusal(404, "CertificateNotExist", f"The specified ServerCertificateId does not exist: {id!r}.")
    return account.find(CERTIFICATE, id, missing)


def _https(account: Account, arguments: Arguments) -> Object:
    balancer, port = balancer_of(account, arguments), arguments["ListenerPort"]
    missing = Refusal(404, "ListenerNotFound", f"You have not created an HTTPS listener for port {port}.")
    return account.find(LISTENER, f"{balancer['id']}_https_{port}", missing)


def _extensions(account: Account, listener: Object) -> list[Object]:
    return [each for each in account.store.all(EXTENSION) if each["listener"] == listener["id"]]


def _extension(account: Account, arguments: Arguments) -> Object:
    missing = Refusal(404, "InvalidDomainExtensionId.NotFound", "The specified DomainExtensionId does not exist.")
    return account.find(EXTENSION, arguments["DomainExtensionId"], missing)


def _shown(account: Account, certificate: Object) -> dict[str, Any]:
    return {
        "ServerCertificateId": certificate["id"],
        "ServerCertificateName": certificate["name"],
        "CommonName": certificate["common_name"],
        "Fingerprint": certificate["fingerprint"],
        "RegionId": account.region,
        "CreateTime": as_text(certificate["made"]),
        "CreateTimeStamp": int(certificate["made"] * 1000),
        "ExpireTime": as_text(certificate["expires"]),
        "ExpireTimeStamp": int(certificate["expires"] * 1000),
        "IsAliCloudCertificate": 0,
        "Tags": {"Tag": shown_tags(certificate["tags"])},
    }
