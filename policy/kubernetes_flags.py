"""Finds the flags of Kubernetes' own components, wherever a program writes them: user data, objects, containers.

A text is read as a stream of headings (`controllerManager:`, `kubelet`) and names with values (`--cloud-provider=x`,
`{name: cloud-provider, value: x}`, `cloud-provider: x`), each of which belongs to the heading before it. So it may be
YAML, a manifest, cloud-init, or a shell script with such texts in it.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final

from pulumi_policy.proxy import UnknownValueError

from policy.objects import dig, each
from policy.rules import Stack
from policy.subjects import CONFIG_MAP, SECRET, Subject
from policy.unknowns import collect
from policy.workloads import WORKLOADS, Container, containers, repository

API_SERVER, CONTROLLER_MANAGER = "kube-apiserver", "kube-controller-manager"
KUBELET, KUBE_PROXY, CCM = "kubelet", "kube-proxy", "cloud-controller-manager"
CLUSTER: Final = "cluster"
"""Not a component: settings of a cluster in a kubeadm configuration."""

_HEADINGS: Final = {
    "apiServer": API_SERVER,
    "controllerManager": CONTROLLER_MANAGER,
    "nodeRegistration": KUBELET,
    "kubeletExtraArgs": KUBELET,
    "KUBELET_EXTRA_ARGS": KUBELET,
    "KUBELET_KUBEADM_ARGS": KUBELET,
    "ClusterConfiguration": CLUSTER,
    "InitConfiguration": KUBELET,
    "JoinConfiguration": KUBELET,
    "KubeletConfiguration": "KubeletConfiguration",
    "KubeProxyConfiguration": KUBE_PROXY,
    **{name: name for name in (API_SERVER, CONTROLLER_MANAGER, KUBELET, KUBE_PROXY, CCM)},
}
_OTHER_HEADINGS: Final = ("scheduler", "etcd", "networking", "dns", "kube-scheduler")
_NAMES: Final = (
    "allocate-node-cidrs",
    "cloud-config",
    "cloud-provider",
    "cloudProvider",
    "cluster-cidr",
    "clusterCIDR",
    "controllers",
    "healthz-bind-address",
    "healthzBindAddress",
    "kubernetesVersion",
    "mode",
    "node-cidr-mask-size",
    "node-cidr-mask-size-ipv4",
    "nodeport-addresses",
    "nodePortAddresses",
    "podSubnet",
    "proxy-mode",
    "service-cluster-ip-range",
    "serviceSubnet",
)
_TOKEN: Final = re.compile(
    rf"(?<![\w-])(?P<heading>{'|'.join((*_HEADINGS, *_OTHER_HEADINGS))})(?![\w.-])"
    rf"|(?<![\w/.-])(?:--)?(?P<name>{'|'.join(sorted(_NAMES, key=len, reverse=True))})(?![\w-])[\"']?"
    r"(?:[ \t]*,?\s*[\"']?value[\"']?:|[ \t]*[=:,]|[ \t])?(?:[ \t]|\n[ \t]*-[ \t]|\[)*"
    r"(?P<value>\"[^\"]*\"|'[^']*'|(?:\$\{\w+\}|[^\s\"'{}\[\]])+)?"
)
_COMMENT: Final = re.compile(r"^[ \t]*#(?!!).*$", re.MULTILINE)
_VARIABLE: Final = re.compile(r"^[ \t]*(?:export[ \t]+)?(\w+)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"']*)", re.MULTILINE)
_USE: Final = re.compile(r"\$\{?(\w+)\}?")
_ENCODED: Final = re.compile(r"(?:[A-Za-z0-9+/]{60,}={0,2}\s*)+[A-Za-z0-9+/]*={0,2}")
_USER_DATA: Final = ("userData", "userDataBase64", "customData")


UNKNOWN_TEXTS: Final = (
    " A text that is unknown in a preview, such as user data with the address of a load balancer that does not exist "
    "yet: it is judged in the plan of a pull request, whose values are simulated, and in the update."
)
"""For `unseen` of the rules that read texts."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What one text, or one container, says of Kubernetes' components."""

    where: str
    """Such as `user data`."""
    text: str
    """Of a container: its flags, one a line."""
    headings: frozenset[str] = frozenset()
    """The components and kinds of configuration that it mentions."""
    values: Mapping[tuple[str, str], str | None] = field(default_factory=dict)
    """By component and name; None where the value depends on a variable that is set elsewhere."""

    def has(self, component: str, name: str) -> bool:
        """Whether the component is given this flag."""
        return (component, name) in self.values

    def value(self, component: str, *names: str) -> str | None:
        """The value of the first of these names that the component has."""
        return next((found for name in names if (found := self.values.get((component, name))) is not None), None)

    def anywhere(self, name: str) -> str | None:
        """The value of a name that means the same under every heading, such as `podSubnet`."""
        return next((value for (_, each), value in self.values.items() if each == name and value is not None), None)

    def mentions(self, name: str) -> bool:
        """Whether the name has any value under any heading."""
        return any(each == name for _, each in self.values)


Found = Callable[[], Flags]
"""Raises UnknownValueError."""


def flags_of(stack: Stack) -> Iterator[tuple[Subject, Found]]:
    """Each text and each container of the stack that may have flags of Kubernetes' components."""
    for subject in stack.subjects:
        for found in collect(_of_subject(subject)):
            yield subject, found if subject.kind in WORKLOADS else partial(_if_known, found)


@lru_cache(maxsize=512)
def read(where: str, text: str) -> Flags:
    """The flags in a text."""
    plain = _COMMENT.sub("", _ENCODED.sub(_decoded, text).replace("\\\n", "").replace("\\n", "\n"))
    variables = {name: value.strip("\"'") for name, value in _VARIABLE.findall(plain)}
    headings: set[str] = set()
    values: dict[tuple[str, str], str | None] = {}
    heading = ""
    for token in _TOKEN.finditer(plain):
        if token["heading"]:
            heading = _HEADINGS.get(token["heading"], "")
            headings |= {token["heading"], heading}
        else:
            values[heading, token["name"]] = _filled((token["value"] or "").strip("\"'").rstrip(","), variables)
    return Flags(where, plain, frozenset(headings), values)


def _if_known(text: Found) -> Flags:
    """Nothing, where the text is unknown.

    User data has the address of a load balancer in it, and no preview of a new cluster knows it: every rule would be
    "not evaluated" there. The plan of a pull request knows it (`cloud_stacks/offline.py`), and so does the update.
    """
    try:
        return text()
    except UnknownValueError:
        return Flags("", "")


def _of_subject(subject: Subject) -> Iterator[Found]:
    if subject.kind in (CONFIG_MAP, SECRET):
        for field_ in ("data", "stringData"):
            for key in dig(subject.props, field_) or ():
                yield partial(_of_entry, subject, field_, str(key))
    elif subject.kind in WORKLOADS:
        for container in containers(subject):
            yield partial(_of_container, container)
    elif ":" in subject.kind:
        for key in subject.props:
            if key in _USER_DATA:
                yield partial(_of_user_data, subject, str(key))


def _of_entry(subject: Subject, field_: str, key: str) -> Flags:
    text = str(dig(subject.props, field_, key) or "")
    if subject.kind == SECRET and field_ == "data":
        text = _plain(text) or ""
    return read(f"key {key}", text)


def _of_user_data(subject: Subject, key: str) -> Flags:
    text = str(subject.props.get(key) or "")
    return read("user data", _plain(text) or text)


def _of_container(container: Container) -> Flags:
    spec = container()
    image = str(dig(spec, "image") or "")
    # A CCM's own flags are its rules' business, and may be unknown where these here do not matter.
    command = [str(next(each(dig(spec, "command")), lambda: "")()).rpartition("/")[2]]
    if not {repository(image), *command} & {API_SERVER, CONTROLLER_MANAGER, KUBELET, KUBE_PROXY}:
        return Flags("", "")
    words = [str(word()) for name in ("command", "args") for word in each(dig(spec, name))]
    return read(f"container {dig(spec, 'name')}", "\n".join([image, *words]))


def _filled(value: str, variables: Mapping[str, str]) -> str | None:
    filled = _USE.sub(lambda use: variables.get(use[1], use[0]), value)
    return None if "$" in filled or "{{" in filled else filled


def _decoded(encoded: re.Match[str]) -> str:
    return _plain(encoded[0]) or encoded[0]


def _plain(encoded: str) -> str | None:
    """The text of base64, compressed or not; None if it is no such text."""
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)
        return (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode()
    except (binascii.Error, ValueError, OSError, EOFError):
        return None
