"""The security groups of pods with their own network interface ("security groups for pods").

The nodes' groups do not protect such pods. Groups with the cluster's tag are opened to load balancers like the
nodes' groups; the controller may not change others, and warns the Service.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from cloud_controller.cloud import AccessDenied
from cloud_controller.clouds.aws.client import Api
from cloud_controller.clouds.aws.vpc_state import LIFETIME
from cloud_controller.clouds.common.cache import Cache, Entries

_AGAIN = 60.0
"""Seconds after which the list is read again for a new pod that it lacks, if any pod has its own interface."""

_log = logging.getLogger(__name__)


class PodGroups:
    """The interfaces of a VPC's pods, in one list. Safe to share between threads."""

    def __init__(self, api: Api, cache: Cache) -> None:
        self._api = api
        self._groups: Entries[Mapping[str, tuple[str, ...]]] = Entries(cache, LIFETIME)
        self._lock = cache.lock
        # Most pods have no interface, so pods that a list lacked are kept too, as long as a Service has them as
        # targets.
        self._asked_for: set[str] = set()
        self._looked_for: set[str] = set()

    def of(self, vpc_id: str, addresses: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """The security groups of those of these pods that have their own interface.

        Empty without the permission to read it, because load balancers work without.
        """
        with self._lock:
            self._asked_for |= {*addresses}
            has_new = bool(self._groups.get(vpc_id)) and not self._looked_for.issuperset(addresses)
            is_due = self._groups.is_due(vpc_id)
        groups = self._groups.fetch(
            vpc_id, lambda: self._listed(vpc_id, all=is_due), _AGAIN if has_new and not is_due else None
        )
        return {each: groups[each] for each in addresses if each in groups}

    def _listed(self, vpc_id: str, *, all: bool) -> Mapping[str, tuple[str, ...]]:
        with self._lock:
            # The list may lack pods that are asked for while it is read.
            asked_for = {*self._asked_for}
        found = dict(self._read(vpc_id))
        with self._lock:
            if all:
                self._looked_for = asked_for
                self._asked_for -= asked_for
            else:
                self._looked_for |= asked_for
        return found

    def _read(self, vpc_id: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "interface-type", "Values": ["branch"]}]
        pages = self._api.pages(
            "ec2", "DescribeNetworkInterfaces", "NetworkInterfaces", Filters=filters, MaxResults=1000
        )
        try:
            for interface in pages:
                groups = tuple(each["GroupId"] for each in interface.get("Groups") or ())
                of_v6 = (each["Ipv6Address"] for each in interface.get("Ipv6Addresses") or ())
                for address in (interface["PrivateIpAddress"], *of_v6):
                    yield address, groups
        except AccessDenied as error:
            _log.warning("could not read the security groups of pods error=%r", str(error))
