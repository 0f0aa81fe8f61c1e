"""The configuration files of the services, for one folder of state and one set of ports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SERVICES = {"identity": "keystone", "network": "neutron", "load-balancer": "octavia", "compute": "nova"}
"""Types in the catalog, and what serves them."""
PATHS = {"identity": "/v3", "network": "", "load-balancer": "", "compute": "/v2.1"}
PASSWORD = "secret"  # of services on this machine's loopback, for tests
REGION = "RegionOne"

Ini = Mapping[str, Mapping[str, object]]


def write(folder: Path, ports: Mapping[str, int], prefix: Path) -> None:
    """Write every service's file into `folder`. `prefix`: of the services' environment."""
    for name, content in _contents(folder, ports, prefix).items():
        lines = [
            line
            for section, values in content.items()
            for line in (f"[{section}]", *(f"{key} = {value}" for key, value in values.items()))
        ]
        (folder / f"{name}.conf").write_text("\n".join(lines) + "\n")


def _contents(folder: Path, ports: Mapping[str, int], prefix: Path) -> Mapping[str, Ini]:
    keystone = f"http://127.0.0.1:{ports['identity']}"

    def database(name: str) -> dict[str, object]:
        return {"connection": f"sqlite:///{folder}/{name}.db", "sqlite_synchronous": "false"}

    def user(name: str) -> dict[str, object]:
        return {
            "auth_url": keystone,
            "auth_type": "password",
            "username": name,
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
            "region_name": REGION,
        }

    def common(name: str) -> Ini:
        tokens = user(name) | {
            "www_authenticate_uri": keystone,
            "service_token_roles_required": "true",
            # Without it, a service refuses application credentials that have access rules.
            "service_type": next(kind for kind, service in SERVICES.items() if service == name),
        }
        return {
            "oslo_concurrency": {"lock_path": folder / "locks"},
            "oslo_messaging_notifications": {"driver": "noop"},
            "database": database(name),
            "keystone_authtoken": tokens,
        }

    keys = {"key_repository": folder / "keys"}
    rpc = {"transport_url": "fake:///", "state_path": folder}
    return {
        "keystone": {
            "database": database("keystone"),
            "token": {"provider": "fernet"},
            "fernet_tokens": keys,
            "fernet_receipts": keys,
            "credential": keys,
            "identity": {"password_hash_rounds": 4},
            # It is one process, so that what it remembers is true. Every request of every service has it validate a
            # token, for which it would read the user, the project and the roles from its database.
            "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        },
        "neutron": {
            "DEFAULT": {
                **rpc,
                "core_plugin": "ml2",
                "service_plugins": "router,tag,revisions,timestamp",
                "api_paste_config": prefix / "etc/neutron/api-paste.ini",
                "notify_nova_on_port_status_changes": "false",
                "notify_nova_on_port_data_changes": "false",
                "dhcp_agent_notification": "false",
                # There are no agents to tell what changes, for which each router would be read several times.
                "rpc_workers": 0,
                "enable_dvr": "false",
            },
            **common("neutron"),
            # Ports stay unbound: there are no hosts to bind them to.
            "ml2": {
                "type_drivers": "vxlan,flat",
                "tenant_network_types": "vxlan",
                "mechanism_drivers": "",
                "extension_drivers": "port_security",
            },
            "ml2_type_vxlan": {"vni_ranges": "1:100000"},
            "ml2_type_flat": {"flat_networks": "*"},
            "quotas": dict.fromkeys(
                ("quota_network", "quota_subnet", "quota_port", "quota_router", "quota_floatingip"), -1
            ),
        },
        "octavia": {
            "DEFAULT": {"transport_url": "fake:///"},
            "api_settings": {"enabled_provider_drivers": "amphora:stock", "default_provider_driver": "amphora"},
            "controller_worker": {
                "network_driver": "allowed_address_pairs_driver",
                "compute_driver": "compute_noop_driver",
                "amphora_driver": "amphora_noop_driver",
            },
            "certificates": {"cert_manager": "local_cert_manager"},
            **common("octavia"),
            # Its default is an argument that SQLite's engine refuses.
            "database": database("octavia") | {"pool_timeout": ""},
            "service_auth": user("octavia"),
            "neutron": {"valid_interfaces": "internal"},
        },
        "nova": {
            "DEFAULT": {**rpc, "host": "peer"},
            "wsgi": {"api_paste_config": prefix / "etc/nova/api-paste.ini"},
            **common("nova"),
            "api_database": database("nova_api"),
            "neutron": user("nova"),
            "placement": user("nova"),
        },
    }
