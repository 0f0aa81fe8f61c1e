"""The certificate authority of a cluster that runs itself, and an administrator's certificate.

The authority is the program's, so that the kubeconfig is known without asking a machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_tls as tls

from .kubeconfigs import with_certificate

_YEAR = 24 * 365


@dataclass(frozen=True)
class Keys:
    """The cluster's certificate authority, and an administrator that it vouches for; PEM."""

    authority: pulumi.Output[str]
    authority_key: pulumi.Output[str]
    certificate: pulumi.Output[str]
    key: pulumi.Output[str]

    def kubeconfig(self, cluster: str, endpoint: pulumi.Input[str]) -> pulumi.Output[str]:
        """The administrator's."""
        return pulumi.Output.all(endpoint, self.authority, self.certificate, self.key).apply(
            lambda known: with_certificate(
                cluster=cluster, endpoint=known[0], authority=known[1], certificate=known[2], key=known[3]
            )
        )


def make(name: str, opts: pulumi.ResourceOptions) -> Keys:
    """New keys for the cluster `name`."""
    authority_key = tls.PrivateKey(f"{name}-ca", algorithm="ECDSA", ecdsa_curve="P256", opts=opts)
    authority = tls.SelfSignedCert(
        f"{name}-ca",
        private_key_pem=authority_key.private_key_pem,
        is_ca_certificate=True,
        subject={"common_name": "kubernetes"},
        allowed_uses=["cert_signing", "digital_signature", "key_encipherment"],
        validity_period_hours=10 * _YEAR,
        opts=opts,
    )
    key = tls.PrivateKey(f"{name}-admin", algorithm="ECDSA", ecdsa_curve="P256", opts=opts)
    request = tls.CertRequest(
        f"{name}-admin",
        private_key_pem=key.private_key_pem,
        # kubeadm binds this group to cluster-admin, which can be taken back; system:masters could not.
        subject={"common_name": "pulumi", "organization": "kubeadm:cluster-admins"},
        opts=opts,
    )
    certificate = tls.LocallySignedCert(
        f"{name}-admin",
        ca_private_key_pem=authority_key.private_key_pem,
        ca_cert_pem=authority.cert_pem,
        cert_request_pem=request.cert_request_pem,
        allowed_uses=["client_auth", "digital_signature"],
        validity_period_hours=_YEAR,
        # The first update in its last three months renews it.
        early_renewal_hours=_YEAR // 4,
        opts=opts,
    )
    return Keys(authority.cert_pem, authority_key.private_key_pem, certificate.cert_pem, key.private_key_pem)
