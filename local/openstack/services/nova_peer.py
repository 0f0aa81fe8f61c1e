"""Puts servers into Nova's databases: nova-api then shows them as any others, without conductor and hypervisor.

POST servers            {"id", "name", "project_id", "user_id", "zone", "metadata", "interfaces": [{"network", "mac",
                         "port_id", "cidr", "address", "floating"?}]}
PUT servers/ID          {"vm_state": "stopped"}: what Nova knows of it
DELETE servers/ID       it is gone: 404 from then on
"""

from __future__ import annotations

from typing import Any

from nova import context, objects, utils
from nova.network import model
from oslo_utils import timeutils

_FLAVOR = "m1.small"


def before() -> None:
    """Nothing happens in the background."""


def answer(method: str, path: list[str], body: dict[str, Any]) -> object:
    """See the module."""
    admin = context.get_admin_context()
    cell = next(each for each in objects.CellMappingList.get_all(admin) if not each.is_cell0())
    if method == "POST":
        _boot(admin, cell, body)
        return {}
    with context.target_cell(admin, cell) as inside:
        server = objects.Instance.get_by_uuid(inside, path[1])
        if method == "DELETE":
            server.destroy()
        else:
            server.update(body)
            server.save()
    if method == "DELETE":
        mapping = objects.InstanceMapping.get_by_instance_uuid(admin, path[1])
        mapping.queued_for_delete = True
        mapping.save()
    return {}


def _boot(admin: Any, cell: Any, body: dict[str, Any]) -> None:
    flavor = _flavor(admin)
    uuid = body["id"]
    owner = {"project_id": body["project_id"], "user_id": body["user_id"]}
    objects.InstanceMapping(admin, instance_uuid=uuid, cell_mapping=cell, queued_for_delete=False, **owner).create()
    with context.target_cell(admin, cell) as inside:
        _service(inside)
        server = objects.Instance(
            inside,
            uuid=uuid,
            display_name=body["name"],
            hostname=utils.sanitize_hostname(body["name"], f"Server-{uuid}"),
            host="peer",
            node="peer",
            vm_state="active",
            power_state=1,
            launched_at=timeutils.utcnow(),
            flavor=flavor,
            instance_type_id=flavor.id,
            memory_mb=flavor.memory_mb,
            vcpus=flavor.vcpus,
            root_gb=flavor.root_gb,
            ephemeral_gb=0,
            availability_zone=body.get("zone", "nova"),
            image_ref="",
            metadata=body.get("metadata", {}),
            system_metadata={},
            compute_id=None,
            old_flavor=None,
            new_flavor=None,
            **owner,
        )
        server.create()
        cache = objects.InstanceInfoCache.new(inside, uuid)
        cache.network_info = model.NetworkInfo([_interface(each) for each in body["interfaces"]])
        cache.save()


def _flavor(admin: Any) -> Any:
    if found := [each for each in objects.FlavorList.get_all(admin) if each.name == _FLAVOR]:
        return found[0]
    made = objects.Flavor(
        admin,
        name=_FLAVOR,
        flavorid="1",
        memory_mb=2048,
        vcpus=2,
        root_gb=20,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        is_public=True,
        disabled=False,
        extra_specs={},
        projects=[],
    )
    made.create()
    return made


def _service(inside: Any) -> None:
    """The host's zone is that of its service."""
    if not objects.ServiceList.get_by_binary(inside, "nova-compute"):
        objects.Service(inside, host="peer", binary="nova-compute", topic="compute", report_count=0).create()


def _interface(wanted: dict[str, Any]) -> Any:
    subnets = []
    for ip in wanted["ips"]:
        address = model.FixedIP(address=ip["address"])
        for floating in ip.get("floating", ()):
            address.add_floating_ip(model.IP(address=floating, type="floating"))
        subnets.append(model.Subnet(cidr=ip["cidr"], ips=[address], version=6 if ":" in ip["address"] else 4))
    network = model.Network(id=wanted["network_id"], label=wanted["network"], subnets=subnets)
    return model.VIF(id=wanted["port_id"], address=wanted["mac"], type="ovs", active=True, network=network)
