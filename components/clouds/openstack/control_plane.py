"""A control plane on servers of the cluster's own: the way to it, its keys, and the credential of the CCM.

The servers are a pool (`nodes`); here is what they share. Servers have no identity in OpenStack, so their secrets
are in their user data: every machine of the control plane gets the same authorities and keys, a worker only a
certificate by which it may join. Nothing is exchanged between machines.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_openstack as openstack

from ..common import certificates
from ..common.certificates import Pair
from ..common.dependencies import with_what_it_needs
from ..common.kubeconfigs import as_base64, with_certificate
from ..interface import ClusterParts, NetworkParts
from . import credential, security_groups
from .access import secret_name
from .settings import (
    DEFAULT_NETWORK_CIDR,
    DEFAULT_POD_CIDR,
    DEFAULT_SERVICE_CIDR,
    OpenstackClusterArgs,
    tags,
)

API_PORT = 6443
JOINERS = "system:bootstrappers:kubeadm:default-node-token"
"""The group that kubeadm lets join machines."""
_SILENCE = 900_000
"""Milliseconds; a watch may be silent for long."""


def make(
    name: str, network: NetworkParts, settings: OpenstackClusterArgs, opts: pulumi.ResourceOptions
) -> ClusterParts:
    """What the machines of the control plane, the nodes and the program itself need to find each other."""
    network_cidr = settings.get("network_cidr", DEFAULT_NETWORK_CIDR)
    pod_cidr = settings.get("pod_cidr", DEFAULT_POD_CIDR)
    groups = security_groups.make(
        name,
        network_cidr=network_cidr,
        pod_cidr=pod_cidr,
        api_port=API_PORT,
        machines_reach=settings.get("control_plane_egress", ()),
        opts=opts,
    )
    balancer, pool, complete = _way_in(name, network, network_cidr, settings, opts)
    inside = with_what_it_needs(balancer.vip_address, [complete])
    outside = _floating_ip(name, balancer, settings, opts) if settings.get("api_sources") else None
    address = with_what_it_needs(outside, [complete]) if outside is not None else inside
    keys = certificates.make(name, opts)
    joiner = certificates.client(
        f"{name}-join", Pair(keys.authority, keys.authority_key), f"{name}-join", JOINERS, opts
    )
    url = pulumi.Output.concat("https://", address, f":{API_PORT}")
    join: dict[str, pulumi.Input[str]] = {
        "region": "",
        "network_id": network.id,
        "image_id": settings["image_id"],
        "kubernetes_version": settings["kubernetes_version"],
        "endpoint": inside,
        "api_url": url,
        "api_names": outside if outside is not None else "",
        "certificate_authority": keys.authority.apply(as_base64),
        "joiner": pulumi.Output.secret(_kubeconfig(name, inside, keys.authority, joiner)),
        "pki": pulumi.Output.secret(_pki(name, keys, opts)),
        "pod_cidr": pod_cidr,
        "service_cidr": settings.get("service_cidr", DEFAULT_SERVICE_CIDR),
        "node_security_group_id": groups.nodes,
        "control_plane_security_group_id": groups.control_plane,
        "pool_id": with_what_it_needs(pool.id, [complete]),
    }
    kubeconfig: pulumi.Output[str] = pulumi.Output.secret(keys.kubeconfig(name, url))
    kept = openstack.keymanager.SecretV1(
        f"{name}-kubeconfig",
        name=secret_name(name),
        payload=kubeconfig,
        payload_content_type="text/plain",
        secret_type="opaque",
        # A renewed one is another secret.
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(protect=False)),
    )
    # Unknown until the way to the control plane exists, so that nothing looks for the cluster too early; and what needs
    # it is gone before the kubeconfig, by which dynamic providers reach the cluster.
    cluster_id = pulumi.Output.all(balancer.id, kept.id).apply(lambda _: name)
    facts = {**network.facts, **credential.make(name, settings, opts)}
    return ClusterParts(cluster_id, kubeconfig, balancer, join, facts=facts)


def _way_in(
    name: str, network: NetworkParts, network_cidr: str, settings: OpenstackClusterArgs, opts: pulumi.ResourceOptions
) -> tuple[openstack.loadbalancer.LoadBalancer, openstack.loadbalancer.Pool, openstack.loadbalancer.Monitor]:
    """A load balancer before the API servers; the last part is the last that it needs."""
    full = f"{name}-api"
    balancer = openstack.loadbalancer.LoadBalancer(
        full,
        name=full,
        description=f"API servers of {name}",
        vip_subnet_id=next(iter(network.subnet_ids.values())),
        tags=tags(),
        opts=opts,
    )
    listener = openstack.loadbalancer.Listener(
        full,
        name=full,
        loadbalancer_id=balancer.id,
        protocol="TCP",
        protocol_port=API_PORT,
        allowed_cidrs=[network_cidr, *settings.get("api_sources", ())],
        timeout_client_data=_SILENCE,
        timeout_member_data=_SILENCE,
        tags=tags(),
        opts=opts,
    )
    pool = openstack.loadbalancer.Pool(
        full, name=full, listener_id=listener.id, protocol="TCP", lb_method="LEAST_CONNECTIONS", tags=tags(), opts=opts
    )
    monitor = openstack.loadbalancer.Monitor(
        full,
        name=full,
        pool_id=pool.id,
        type="HTTPS",
        url_path="/readyz",
        delay=10,
        timeout=5,
        max_retries=2,
        max_retries_down=2,
        opts=opts,
    )
    return balancer, pool, monitor


def _floating_ip(
    name: str,
    balancer: openstack.loadbalancer.LoadBalancer,
    settings: OpenstackClusterArgs,
    opts: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """The address of the load balancer in the external network."""
    invoked = pulumi.InvokeOptions(parent=balancer)
    external = openstack.networking.get_network_output(network_id=settings["external_network_id"], opts=invoked)
    floating = openstack.networking.FloatingIp(
        f"{name}-api",
        pool=external.name,
        port_id=balancer.vip_port_id,
        description=f"API servers of {name}",
        tags=tags(),
        opts=opts,
    )
    return floating.address


def _kubeconfig(
    name: str, address: pulumi.Output[str], authority: pulumi.Output[str], user: Pair
) -> pulumi.Output[str]:
    return pulumi.Output.all(address, authority, user.certificate, user.key).apply(
        lambda known: with_certificate(
            cluster=name,
            endpoint=f"https://{known[0]}:{API_PORT}",
            authority=known[1],
            certificate=known[2],
            key=known[3],
        )
    )


def _pki(name: str, keys: certificates.Keys, opts: pulumi.ResourceOptions) -> pulumi.Output[str]:
    """What every machine of the control plane has in /etc/kubernetes/pki, as JSON: by file, PEM.

    kubeadm makes the rest, and none of these where they are there.
    """
    etcd = certificates.authority(f"{name}-etcd-ca", "etcd-ca", opts)
    front_proxy = certificates.authority(f"{name}-front-proxy-ca", "front-proxy-ca", opts)
    tokens = certificates.private_key(f"{name}-service-account-tokens", opts)
    return pulumi.Output.all(
        **{
            "ca.key": keys.authority_key,
            "etcd/ca.crt": etcd.certificate,
            "etcd/ca.key": etcd.key,
            "front-proxy-ca.crt": front_proxy.certificate,
            "front-proxy-ca.key": front_proxy.key,
            "sa.key": tokens.private_key_pem,
            "sa.pub": tokens.public_key_pem,
        }
    ).apply(json.dumps)
