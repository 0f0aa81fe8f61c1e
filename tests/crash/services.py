"""Making Services of which many in turn have the same node ports."""

from __future__ import annotations

from cloud_controller.kube import SERVICES, InvalidError, Kube, Object
from tests.crash.daemon import until


def create_service(kube: Kube, service: Object) -> None:
    """Make it as soon as its node ports are free: the API server gives them back a moment after the last owner went."""

    def made() -> bool:
        try:
            kube.create(SERVICES, service)
        except InvalidError as error:
            if "provided port is already allocated" in str(error):
                return False
            raise
        return True

    until(made, "the node ports are free")
