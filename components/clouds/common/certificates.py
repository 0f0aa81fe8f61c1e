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
    made = authority(f"{name}-ca", "kubernetes", opts)
    # kubeadm binds this group to cluster-admin, which can be taken back; system:masters could not.
    admin = client(f"{name}-admin", made, "pulumi", "kubeadm:cluster-admins", opts)
    return Keys(made.certificate, made.key, admin.certificate, admin.key)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key; PEM."""

    certificate: pulumi.Output[str]
    key: pulumi.Output[str]


def authority(full: str, common_name: str, opts: pulumi.ResourceOptions) -> Pair:
    """A new certificate authority."""
    key = private_key(full, opts)
    made = tls.SelfSignedCert(
        full,
        private_key_pem=key.private_key_pem,
        is_ca_certificate=True,
        subject={"common_name": common_name},
        allowed_uses=["cert_signing", "digital_signature", "key_encipherment"],
        validity_period_hours=10 * _YEAR,
        opts=opts,
    )
    return Pair(made.cert_pem, key.private_key_pem)


def client(full: str, by: Pair, user: str, group: str, opts: pulumi.ResourceOptions) -> Pair:
    """A client's certificate for a year, by which the API server knows `user` as one of `group`."""
    # Where the cluster is protected, the renewal would be refused.
    opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=False))
    key = private_key(full, opts)
    request = tls.CertRequest(
        full,
        private_key_pem=key.private_key_pem,
        subject={"common_name": user, "organization": group},
        opts=opts,
    )
    made = tls.LocallySignedCert(
        full,
        ca_private_key_pem=by.key,
        ca_cert_pem=by.certificate,
        cert_request_pem=request.cert_request_pem,
        allowed_uses=["client_auth", "digital_signature"],
        validity_period_hours=_YEAR,
        # The first update in its last three months renews it.
        early_renewal_hours=_YEAR // 4,
        opts=opts,
    )
    return Pair(made.cert_pem, key.private_key_pem)


def private_key(full: str, opts: pulumi.ResourceOptions) -> tls.PrivateKey:
    """A new key."""
    return tls.PrivateKey(full, algorithm="ECDSA", ecdsa_curve="P256", opts=opts)
