"""What the recorder needs to know of OpenStack's package: addresses, and the network that a function returns."""

from __future__ import annotations

from typing import Final

from local.plugins.recorder import Recorder
from local.plugins.recorder_values import Place, Rules, simulated_text
from local.plugins.values import PropertyMap


def recorder(config: PropertyMap) -> Recorder:
    """A recorder of OpenStack's resources. Raises ProviderError as `Recorder` does."""
    return Recorder(config, RULES)


def _network(args: PropertyMap, place: Place) -> PropertyMap:
    id_ = str(args.get("networkId") or simulated_text("network", str(args.get("name"))))
    return {"id": id_, "networkId": id_, "name": args.get("name") or simulated_text(id_), "region": place.region}


RULES: Final = Rules(functions={"openstack:networking/getNetwork:getNetwork": _network})
