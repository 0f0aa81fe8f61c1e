"""The environment and the arguments of a container's process, from its spec. Pure."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.machine.images import Image, command_of
from local.machine.sources import MissingSourceError, Sources, field_value

Object = dict[str, Any]

_REFERENCE = re.compile(r"\$(\$|\(([^()]*)\))")


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where processes reach the API server: its own loopback endpoint, because users cannot bind port 443."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class PodContext:
    """What a container's environment depends on besides its spec; addresses are cluster addresses (10.x)."""

    pod: Object
    pod_ip: str
    host_ip: str
    api_server: ApiServer


def environment(container: Object, context: PodContext, sources: Sources) -> dict[str, str]:
    """The whole environment of the container's process. Raises MissingSourceError."""
    env = _base_environment(context)
    for entry in container.get("envFrom") or []:
        env |= _env_from(entry, sources)
    declared = {entry["name"] for entry in container.get("env") or []}
    known = {name: value for name, value in env.items() if name not in declared}
    for entry in container.get("env") or []:
        value = _value(entry, context, sources)
        if value is not None:
            known[entry["name"]] = expand(value, known) if "valueFrom" not in entry else value
    return {name: value for name, value in env.items() if name not in known} | known


def arguments(container: Object, image: Image, env: dict[str, str]) -> list[str]:
    """The command line of the container's process, with `$(NAME)` expanded in the container's own arguments."""
    command = [expand(word, env) for word in container.get("command") or []]
    args = [expand(word, env) for word in container.get("args") or []]
    return command_of(image, command, args)


def expand(text: str, env: dict[str, str]) -> str:
    """`$(NAME)` becomes its value, `$$` a dollar sign; an unset name stays as it is."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return env.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)


def rewrite_paths(text: str, places: dict[str, str]) -> str:
    """`text` with each mount path in it (also as in `--file=/etc/x/y`) replaced by the volume's real path.

    The longest mount path wins; a longer name with the same beginning is left alone.
    """
    if not places:
        return text
    alternatives = "|".join(re.escape(path) for path in sorted(places, key=len, reverse=True))
    pattern = rf"(?<![\w./-])({alternatives})(?=$|[/:,;\s\"'])"
    return re.sub(pattern, lambda match: places[match[1]], text)


def _base_environment(context: PodContext) -> dict[str, str]:
    return {
        # The project's commands first, as an image of it would have them.
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        "HOSTNAME": _host_name(context.pod),
        "HOME": "/",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "KUBERNETES_SERVICE_HOST": context.api_server.host,
        "KUBERNETES_SERVICE_PORT": str(context.api_server.port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(context.api_server.port),
    }


def _host_name(pod: Object) -> str:
    spec = pod["spec"]
    return str(spec["nodeName"] if spec.get("hostNetwork") else spec.get("hostname") or pod["metadata"]["name"])


def _env_from(entry: Object, sources: Sources) -> dict[str, str]:
    data: dict[str, bytes] | None = None
    if reference := entry.get("secretRef"):
        data = sources.secret_data(reference["name"], optional=bool(reference.get("optional")))
    elif reference := entry.get("configMapRef"):
        data = sources.config_map_data(reference["name"], optional=bool(reference.get("optional")))
    prefix = entry.get("prefix") or ""
    return {prefix + key: _text(value, key) for key, value in (data or {}).items()}


def _value(entry: Object, context: PodContext, sources: Sources) -> str | None:
    """The value of one `env` entry before expansion; None if an optional source is missing."""
    origin = entry.get("valueFrom")
    if not origin:
        return str(entry.get("value") or "")
    if field := origin.get("fieldRef"):
        return field_value(context.pod, field["fieldPath"], pod_ip=context.pod_ip, host_ip=context.host_ip)
    for kind, data_of in (("secretKeyRef", sources.secret_data), ("configMapKeyRef", sources.config_map_data)):
        if reference := origin.get(kind):
            optional = bool(reference.get("optional"))
            data = data_of(reference["name"], optional=optional)
            if data is not None and reference["key"] in data:
                return _text(data[reference["key"]], reference["key"])
            if optional:
                return None
            raise MissingSourceError(f"couldn't find key {reference['key']} in {kind} {reference['name']}")
    raise MissingSourceError(f"env {entry['name']}: valueFrom {', '.join(origin)} is not supported")


def _text(value: bytes, key: str) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise MissingSourceError(
            f"the value of key {key} is not UTF-8 text, so it cannot be in an environment"
        ) from None
    if "\0" in text:
        raise MissingSourceError(f"the value of key {key} contains a NUL, so it cannot be in an environment")
    return text
