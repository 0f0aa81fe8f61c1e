"""Makes the databases of Neutron and Octavia from their models: `databases.py FOLDER`.

Their migrations are written for MySQL and PostgreSQL, and fail on SQLite.
"""

from __future__ import annotations

import sys

from neutron.db.migration.models import head
from octavia.common import constants
from octavia.db import base_models, models
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

NAMES = {
    models.Algorithm: constants.SUPPORTED_LB_ALGORITHMS,
    models.AmphoraRoles: constants.SUPPORTED_AMPHORA_ROLES,
    models.ClientAuthenticationMode: constants.SUPPORTED_CLIENT_AUTH_MODES,
    models.HealthMonitorType: constants.SUPPORTED_HEALTH_MONITOR_TYPES,
    models.L7PolicyAction: constants.SUPPORTED_L7POLICY_ACTIONS,
    models.L7RuleCompareType: constants.SUPPORTED_L7RULE_COMPARE_TYPES,
    models.L7RuleType: constants.SUPPORTED_L7RULE_TYPES,
    models.LBTopology: constants.SUPPORTED_LB_TOPOLOGIES,
    models.OperatingStatus: constants.SUPPORTED_OPERATING_STATUSES,
    models.Protocol: constants.SUPPORTED_PROTOCOLS,
    models.ProvisioningStatus: constants.SUPPORTED_PROVISIONING_STATUSES,
    models.SessionPersistenceType: constants.SUPPORTED_SP_TYPES,
    models.VRRPAuthMethod: constants.SUPPORTED_VRRP_AUTH,
}
"""Octavia's tables of names, which its migrations would fill."""


def main(folder: str) -> None:
    """Make both."""
    head.get_metadata().create_all(create_engine(f"sqlite:///{folder}/neutron.db"))
    octavia = create_engine(f"sqlite:///{folder}/octavia.db")
    base_models.BASE.metadata.create_all(octavia)
    with Session(octavia) as session:
        for table, names in NAMES.items():
            session.add_all(table(name=name) for name in names)
        # What deleted load balancers refer to.
        nothing = constants.NIL_UUID
        profile = {"id": nothing, "name": "DELETED-PLACEHOLDER", "provider_name": constants.DELETED}
        session.add(models.FlavorProfile(**profile, flavor_data="{}"))
        session.add(models.AvailabilityZoneProfile(**profile, availability_zone_data="{}"))
        session.flush()
        session.add(
            models.Flavor(id=nothing, flavor_profile_id=nothing, name=profile["name"], enabled=False, description="")
        )
        session.add(
            models.AvailabilityZone(availability_zone_profile_id=nothing, name=nothing, enabled=False, description="")
        )
        session.commit()


if __name__ == "__main__":
    main(sys.argv[1])
