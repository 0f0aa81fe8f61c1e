"""The schema of mycloud's database: its record types, with their tables and indexes."""

from __future__ import annotations

import secrets
from typing import Any, TypeVar

from local.mycloud.models.balancing import LoadBalancerRecord
from local.mycloud.models.compute import Cluster, MachineRecord
from local.mycloud.models.networking import NetworkRecord, RouteTable, SubnetRecord
from local.mycloud.models.volumes import Volume

Record = NetworkRecord | SubnetRecord | RouteTable | Cluster | MachineRecord | LoadBalancerRecord | Volume
R = TypeVar("R", NetworkRecord, SubnetRecord, RouteTable, Cluster, MachineRecord, LoadBalancerRecord, Volume)

_KINDS: dict[type[Any], tuple[str, str]] = {
    NetworkRecord: ("network", "net"),
    SubnetRecord: ("subnet", "subnet"),
    RouteTable: ("route table", "rtb"),
    Cluster: ("cluster", "c"),
    MachineRecord: ("machine", "i"),
    LoadBalancerRecord: ("load balancer", "lb"),
    Volume: ("volume", "vol"),
}

COLUMNS = ("network_id", "subnet_id", "cluster_id", "zone")
"""The fields with a column of their own, besides id, kind, name and state; null where an object has none."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    network_id TEXT, subnet_id TEXT, cluster_id TEXT, zone TEXT,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS objects_by_kind ON objects (kind, seq);
CREATE INDEX IF NOT EXISTS objects_by_name ON objects (kind, name);
CREATE INDEX IF NOT EXISTS objects_by_state ON objects (kind, state);
CREATE INDEX IF NOT EXISTS objects_by_subnet ON objects (subnet_id);
CREATE INDEX IF NOT EXISTS objects_by_version ON objects (kind, version);
CREATE INDEX IF NOT EXISTS real_machines ON objects (kind, state)
    WHERE kind = 'machine' AND json_extract(body, '$.simulated') IS NOT 1;
CREATE INDEX IF NOT EXISTS machines_by_address ON objects (json_extract(body, '$.private_ips[0]'))
    WHERE kind = 'machine';
CREATE INDEX IF NOT EXISTS load_balancers_by_address ON objects (json_extract(body, '$.address'))
    WHERE kind = 'load balancer';
CREATE TABLE IF NOT EXISTS tags (
    id TEXT NOT NULL REFERENCES objects (id) ON DELETE CASCADE,
    key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (id, key)
);
CREATE TABLE IF NOT EXISTS part_tags (
    id TEXT NOT NULL REFERENCES objects (id) ON DELETE CASCADE,
    key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (id, key, value)
);
CREATE TABLE IF NOT EXISTS routes (
    route_table_id TEXT NOT NULL REFERENCES objects (id) ON DELETE CASCADE,
    destination_cidr TEXT NOT NULL,
    next_hop_machine_id TEXT NOT NULL,
    PRIMARY KEY (route_table_id, destination_cidr)
);
CREATE TABLE IF NOT EXISTS tokens (
    kind TEXT NOT NULL, token TEXT NOT NULL, body_hash TEXT NOT NULL,
    id TEXT NOT NULL REFERENCES objects (id) ON DELETE CASCADE,
    PRIMARY KEY (kind, token)
);
CREATE TABLE IF NOT EXISTS access_tokens (digest TEXT PRIMARY KEY, expires_at REAL NOT NULL, operations TEXT);
CREATE TABLE IF NOT EXISTS limits (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sequence (value INTEGER NOT NULL);
INSERT INTO sequence SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM sequence);
"""


def kind_of(type_: type[Any]) -> str:
    """A record type's name in messages and the database."""
    return _KINDS[type_][0]


def new_id(type_: type[Any]) -> str:
    """A new id of the type's form."""
    return f"{_KINDS[type_][1]}-{secrets.token_hex(6)}"
