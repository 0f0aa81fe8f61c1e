"""CLB: server certificates, which come into an account past the API, and those of an HTTPS listener by domain."""

from __future__ import annotations

from typing import Any, Final

from local.alicloud.account import Account
from local.alicloud.clb_balancers import EXTENSION, LISTENER, balancer_of
from local.alicloud.products import SLB
from local.standin.actions import Arguments
from local.standin.refusals import Refusal
from local.standin.store import Object

CERTIFICATE: Final = "certificate"


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


def add_certificate(account: Account, id: str = "") -> str:
    """Put a certificate into the account, past the API: its contents are of no interest."""
    new = id or f"{account.store.next_number('id'):016x}-{account.region}"
    account.store.put(CERTIFICATE, new, {"id": new, "tags": {}})
    return new


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
