"""The services' databases, keys, catalog and users: made once per user, then copied for each peer."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from local.errors import Report
from local.one_process import alone
from local.openstack import configs
from local.openstack.api import Api
from local.openstack.environment import run
from local.openstack.process import Service, free_ports

_HERE = Path(__file__).parent
_ROLES = ("load-balancer_member",)
"""Besides those that Keystone makes: Octavia's policy asks for it."""


def ensure(python: Path, report: Report) -> Path:
    """The folder of the state that is copied. Makes it, if it is not there, in half a minute."""
    home = python.parents[2]
    made = home / f"state-{_digest()}"
    if made.exists():
        return made
    with alone(home, "making the databases of OpenStack's services", report):
        if not made.exists():
            report("making the databases of Keystone, Neutron, Octavia and Nova for tests, once per user")
            growing = made.with_suffix(".new")
            shutil.rmtree(growing, ignore_errors=True)
            _make(python, growing)
            growing.rename(made)
    return made


def copy(made: Path, folder: Path) -> None:
    """A copy in `folder`, whole or not at all."""
    growing = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(growing, ignore_errors=True)
    shutil.copytree(made, growing)
    growing.rename(folder)


def direct(folder: Path, ports: Mapping[str, int], prefix: Path) -> None:
    """Make the state in `folder` that of services on these ports. `prefix`: of their environment."""
    configs.write(folder, ports, prefix)
    with sqlite3.connect(folder / "keystone.db") as keystone:
        for service, path in configs.PATHS.items():
            keystone.execute(
                "UPDATE endpoint SET url = ? WHERE service_id = (SELECT id FROM service WHERE type = ?)",
                (f"http://127.0.0.1:{ports[service]}{path}", service),
            )
    with sqlite3.connect(folder / "nova_api.db") as nova:
        for name in ("cell0", "cell1"):
            connection = f"sqlite:///{folder}/{_nova_database(name)}.db"
            nova.execute("UPDATE cell_mappings SET database_connection = ? WHERE name = ?", (connection, name))


def _digest() -> str:
    """What the state depends on besides the services: the code that makes it."""
    made_by = (_HERE / "state.py", _HERE / "configs.py", _HERE / "services" / "databases.py")
    return hashlib.sha256(b"".join(each.read_bytes() for each in made_by)).hexdigest()[:16]


def _make(python: Path, folder: Path) -> None:
    folder.mkdir()
    (folder / "keys").mkdir(mode=0o700)
    for name in "01":
        (folder / "keys" / name).write_text(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    ports = free_ports()
    configs.write(folder, ports, python.parents[1])
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}

    def manage(program: str, *arguments: str) -> None:
        config = ("--config-file", str(folder / f"{program.partition('-')[0]}.conf"))
        run(str(python.parent / program), *config, *arguments, env=quiet)

    url = f"http://127.0.0.1:{ports['identity']}"
    manage("keystone-manage", "db_sync")
    endpoints = [part for kind in ("public", "internal") for part in (f"--bootstrap-{kind}-url", f"{url}/v3")]
    manage(
        *("keystone-manage", "bootstrap", "--bootstrap-password", configs.PASSWORD),
        *("--bootstrap-region-id", configs.REGION, *endpoints),
    )
    run(str(python), str(_HERE / "services" / "databases.py"), str(folder), env=quiet)
    manage("nova-manage", "api_db", "sync")
    cell0 = f"sqlite:///{folder}/{_nova_database('cell0')}.db"
    manage("nova-manage", "cell_v2", "map_cell0", "--database_connection", cell0)
    manage("nova-manage", "db", "sync")
    manage("nova-manage", "cell_v2", "create_cell", "--name", "cell1")
    with Service("identity", python, folder, ports["identity"]):
        _seed(Api(url))


def _seed(admin: Api) -> None:
    """The services' users and catalog entries; `direct` sets the URLs."""
    for name in _ROLES:
        admin.post("identity", "roles", {"role": {"name": name}})
    roles = {each["name"]: each["id"] for each in admin.get("identity", "roles")["roles"]}
    project = admin.post("identity", "projects", {"project": {"name": "service"}})["project"]["id"]
    for service, name in configs.SERVICES.items():
        if service == "identity":
            continue
        user = admin.post("identity", "users", {"user": {"name": name, "password": configs.PASSWORD}})["user"]["id"]
        for role in ("service", "admin"):
            admin.put("identity", f"projects/{project}/users/{user}/roles/{roles[role]}")
        entry = admin.post("identity", "services", {"service": {"type": service, "name": name}})["service"]["id"]
        for interface in ("public", "internal"):
            endpoint = {"service_id": entry, "interface": interface, "region_id": configs.REGION}
            admin.post("identity", "endpoints", {"endpoint": {**endpoint, "url": "http://127.0.0.1:1"}})


def _nova_database(cell: str) -> str:
    return {"cell0": "nova_cell0", "cell1": "nova"}[cell]
