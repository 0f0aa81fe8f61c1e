"""Fills in what the API server would: for Services that it has not seen. Pure.

Node ports are ASSUMED: the same for the same port in every version of a Service, so that comparing two versions shows
only real differences.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from cloud_controller.cloud import InvalidConfiguration
from cloud_controller.kube import Object

_FIRST_NODE_PORT, _NODE_PORTS = 30000, 2767
_HEALTH_CHECK_NODE_PORT = 32767
_AFFINITY_SECONDS = 10800
_CREATED = "1970-01-01T00:00:00Z"

_TYPES: Mapping[str, tuple[type, ...]] = {
    "allocateLoadBalancerNodePorts": (bool,),
    "externalIPs": (list,),
    "externalTrafficPolicy": (str,),
    "healthCheckNodePort": (int,),
    "ipFamilies": (list,),
    "ipFamilyPolicy": (str,),
    "loadBalancerClass": (str,),
    "loadBalancerIP": (str,),
    "loadBalancerSourceRanges": (list,),
    "ports": (list,),
    "selector": (dict,),
    "sessionAffinity": (str,),
    "sessionAffinityConfig": (dict,),
    "type": (str,),
}
_PORT_TYPES: Mapping[str, tuple[type, ...]] = {
    "appProtocol": (str,),
    "name": (str,),
    "nodePort": (int,),
    "port": (int,),
    "protocol": (str,),
    "targetPort": (int, str),
}
_EMPTY_IS_UNSET = frozenset(
    {
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "loadBalancerIP",
        "name",
        "nodePort",
        "protocol",
        "sessionAffinity",
        "targetPort",
        "type",
    }
)
"""In these fields, 0 and an empty text are as good as none."""
_NAMES: Mapping[type, str] = {
    bool: "true or false",
    dict: "a mapping",
    int: "a number",
    list: "a list",
    str: "a string",
}


def with_defaults(service: Object) -> Object:
    """The Service as the API server would store it. Raises InvalidConfiguration for a value of the wrong type."""
    metadata, given = service["metadata"], _mapping(service, "spec", "spec")
    annotations = _mapping(metadata, "annotations", "metadata.annotations")
    for name, text in annotations.items():
        _require(f"annotation {name}", text, (str,))
    finalizers = metadata.get("finalizers") or []
    _require("metadata.finalizers", finalizers, (list,))
    for index, each in enumerate(finalizers):
        _require(f"metadata.finalizers[{index}]", each, (str,))
    spec = {name: value for name, value in given.items() if value is not None}
    for name, types in _TYPES.items():
        if name in spec:
            _require(f"spec.{name}", spec[name], types)
    for name in ("externalIPs", "ipFamilies", "loadBalancerSourceRanges"):
        for index, each in enumerate(spec.get(name) or ()):
            _require(f"spec.{name}[{index}]", each, (str,))
    affinity = _mapping(_mapping(spec, "sessionAffinityConfig", ""), "clientIP", "spec.sessionAffinityConfig.clientIP")
    if (seconds := affinity.get("timeoutSeconds")) is not None:
        _require("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, (int,))
    spec = _set(spec)
    kind = spec.setdefault("type", "ClusterIP")
    spec["ports"] = [_port(index, port, spec) for index, port in enumerate(spec.get("ports") or ())]
    if kind == "LoadBalancer" and not spec["ports"]:
        raise InvalidConfiguration("spec.ports", "missing", "at least one")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}})
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if kind in ("LoadBalancer", "NodePort"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer" and spec["externalTrafficPolicy"] == "Local":
        spec.setdefault("healthCheckNodePort", _HEALTH_CHECK_NODE_PORT)
    whole = {
        **metadata,
        "annotations": annotations,
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{metadata['namespace']}/{metadata['name']}")),
        "creationTimestamp": _CREATED,
    }
    return {**service, "metadata": whole, "spec": spec, "status": {"loadBalancer": {}}}


def _port(index: int, port: Any, spec: Object) -> Object:
    where = f"spec.ports[{index}]"
    _require(where, port, (dict,))
    found = {name: value for name, value in port.items() if value is not None}
    for name, types in _PORT_TYPES.items():
        if name in found:
            _require(f"{where}.{name}", found[name], types)
    found = _set(found)
    if not 1 <= found.get("port", 0) <= 65535:
        raise InvalidConfiguration(f"{where}.port", f"{found.get('port', 'nothing')} is not a port", "1 to 65535")
    found.setdefault("protocol", "TCP")
    found.setdefault("targetPort", found["port"])
    allocated = spec.get("allocateLoadBalancerNodePorts", True) if spec["type"] == "LoadBalancer" else True
    if allocated and spec["type"] in ("LoadBalancer", "NodePort"):
        found.setdefault("nodePort", _FIRST_NODE_PORT + found["port"] % _NODE_PORTS)
    return found


def _set(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value or name not in _EMPTY_IS_UNSET}


def _mapping(parent: Object, name: str, where: str) -> dict[str, Any]:
    found = parent.get(name)
    if found is None:
        return {}
    _require(where, found, (dict,))
    return dict(found)


def _require(where: str, value: object, types: tuple[type, ...]) -> None:
    # In Python, True is an int.
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        allowed = " or ".join(_NAMES[each] for each in types)
        quoted = "; in quotes, if it looks like a number" if str in types else ""
        raise InvalidConfiguration(where, f"not {allowed}", f"{allowed}{quoted}")
