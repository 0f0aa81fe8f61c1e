"""What the API says of the health of the members behind a listener. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from cloud_controller.load_balancers.model import Pool

_HEALTH = {None: True, "Unhealthy": False, "Unavailable": True}
"""By the state of a member that is not normal, None: of one that is not named. `Unavailable`: nothing is checked, so it
gets traffic. Missing is `Initial`: nothing is known yet."""


def health_of(answer: Mapping[str, Any], pools: Mapping[str, Pool]) -> dict[tuple[str, str, int], bool]:
    """Whether members pass their health check, as GetListenerHealthStatus says; members of unknown health are absent.

    `pools`: by the IDs of their server groups. The API names the members that are not normal, so of a group that the
    answer lacks, nothing is known. A token says that the answer is cut; the action takes none, so the rest can't be
    read, and a member that is not named may be in it.
    """
    found: dict[tuple[str, str, int], bool] = {}
    is_cut = bool(answer.get("NextToken"))
    for group, states in _states(answer).items():
        if (pool := pools.get(group)) is None:
            continue
        for member in pool.members:
            state = states.get(member.key)
            healthy = None if state is None and is_cut else _HEALTH.get(state)
            if healthy is not None:
                found[pool.name, *member.key] = healthy
    return found


def _states(answer: Mapping[str, Any]) -> dict[str, dict[tuple[str, int], str]]:
    """The states of servers that are not normal, by the server groups that the answer names and the member."""
    found: defaultdict[str, dict[tuple[str, int], str]] = defaultdict(dict)
    for listener in answer.get("ListenerHealthStatus") or ():
        for group in listener.get("ServerGroupInfos") or ():
            found[str(group.get("ServerGroupId"))] |= {
                (str(server[name]), int(server.get("Port") or 0)): str(server.get("Status"))
                for server in group.get("NonNormalServers") or ()
                for name in ("ServerId", "ServerIp")
                if server.get(name)
            }
    return found
