"""Services that ask for something wrong, by the hundred, and what their owner must be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cloud_controller.clouds.mycloud.annotations import CATALOGUE, PREFIX
from cloud_controller.kube import Object
from cloud_controller.load_balancers.catalogue import Annotation

_LONGEST_QUOTE = 100
"""Characters of a value that a message shows at least."""


@dataclass(frozen=True)
class Wrong:
    """One mistake: what it makes of a good Service, and words that its owner must read.

    `refused_by_kubernetes`: an API server does not let it in. `in_cloud`: only the cloud can tell.
    """

    told: tuple[str, ...]
    annotations: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    port: dict[str, Any] = field(default_factory=dict)
    refused_by_kubernetes: bool = False
    in_cloud: bool = False

    def service(self, name: str) -> Object:
        """A Service that is good but for this."""
        port = {"name": "main", "protocol": "TCP", "port": 8080, **self.port}
        return {
            "metadata": {"name": name, "namespace": "default", "annotations": self.annotations},
            "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [port], **self.spec},
        }


def _name(argument: str) -> str:
    return CATALOGUE.by_argument[argument].name


def _quoted(value: str) -> str:
    """How a message quotes it."""
    return repr(value if len(value) <= _LONGEST_QUOTE else f"{value[:_LONGEST_QUOTE]}…")


def _wrong_value(entry: Annotation, value: str) -> Wrong:
    return Wrong((entry.name, _quoted(value), entry.allowed_text), {entry.name: value})


texts = st.one_of(
    st.sampled_from(["", " ", "\n", "None", "null", "nan", "1e3", "1.5", "0x10", "1_000", "+5", "٣", "Ⅷ", "½", "🙂"]),
    st.sampled_from(
        ["yes", "True", "TRUE", "tcp", "http", "1,2", "-", "--", "../../etc/passwd", "' OR 1=1", "{}", "[]"]
    ),
    st.integers(1, 20_000).map(lambda length: "9" * length),
    st.integers(1, 20_000).map(lambda length: "é" * length),
    st.integers(-(10**12), 10**12).map(str),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40),
)
"""What somebody may write where something else belongs."""


def _refuses(entry: Annotation, text: str) -> bool:
    """Whether the documentation (docs/annotations.md) does not allow this text."""
    text = text.strip()
    if entry.type is bool:
        return text not in ("true", "false")
    if entry.type is int:
        plain = text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 20
        return not plain or not (entry.minimum or 0) <= int(text) <= (entry.maximum or 0)
    if entry.allowed:
        return text not in entry.allowed
    if entry.argument == "health_check_path":
        return not text.startswith("/") or "\n" in text
    return entry.argument == "id" and not text.startswith("lb-")


wrong_values = (
    st.tuples(st.sampled_from(CATALOGUE.entries), texts)
    .filter(lambda drawn: _refuses(*drawn))
    .map(lambda drawn: _wrong_value(*drawn))
)


@st.composite
def misspelt_names(draw: st.DrawFn) -> Wrong:
    """The name of an annotation with one letter too many, too few or out of place."""
    name = draw(st.sampled_from([entry.name for entry in CATALOGUE if entry.name.startswith(PREFIX)]))
    word = name.removeprefix(PREFIX)
    at = draw(st.integers(0, len(word) - 2))
    kind = draw(st.sampled_from(["too few", "too many", "swapped", "capital", "other"]))
    changed = {
        "too few": word[:at] + word[at + 1 :],
        "too many": word[: at + 1] + word[at:],
        "swapped": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        "capital": word[:at] + word[at].upper() + word[at + 1 :],
        "other": word[:at] + "x" + word[at + 1 :],
    }[kind]
    changed = changed.strip("-") or "x"
    misspelt = PREFIX + changed
    if misspelt in CATALOGUE.by_name:
        misspelt = f"{name}s"
    return Wrong((misspelt, "unknown on mycloud; did you mean"), {misspelt: "1"})


timeouts_beyond_the_interval = st.tuples(st.integers(1, 59), st.integers(1, 60)).map(
    lambda drawn: Wrong(
        (_name("health_check_timeout"), f"{min(60, sum(drawn))} s is longer", f"(allowed: 1 to {drawn[0]})"),
        {_name("health_check_interval"): str(drawn[0]), _name("health_check_timeout"): str(min(60, sum(drawn)))},
    )
)
sctp = st.integers(1024, 65535).map(
    lambda port: Wrong(
        ("spec.ports[0].protocol", "'SCTP'", "(allowed: TCP, UDP)"), port={"protocol": "SCTP", "port": port}
    )
)
no_node_ports = st.integers(1024, 65535).map(
    lambda port: Wrong(
        ("spec.ports[0].nodePort", "missing", "allowed: spec.allocateLoadBalancerNodePorts: true"),
        spec={"allocateLoadBalancerNodePorts": False},
        port={"port": port},
    )
)
only_ipv6_clients = st.lists(st.integers(0, 128), min_size=1, max_size=3).map(
    lambda lengths: Wrong(
        ("loadBalancerSourceRanges", "only IPv6 ranges", "at least one IPv4 range"),
        spec={"loadBalancerSourceRanges": [f"::/{length}" for length in lengths]},
    )
)
not_cidrs = st.sampled_from(["banana", "10.0.0.0/33", "10.0.0/8", "300.1.1.1/8", "10.0.0.0/-1", "🙂"]).map(
    lambda text: Wrong(
        ("spec.loadBalancerSourceRanges", repr(text), "192.0.2.0/24"),
        spec={"loadBalancerSourceRanges": [text]},
        refused_by_kubernetes=True,
    )
)
ipv6_services = st.sampled_from([["IPv6"], ["IPv6", "IPv4"]]).map(
    lambda families: Wrong(
        ("spec.ipFamilies", "IPv6 cannot be the first family", "IPv4 as the first family"),
        spec={"ipFamilies": families},
        refused_by_kubernetes=True,
    )
)
unknown_ids = st.text("0123456789abcdef", min_size=1, max_size=12).map(
    lambda digits: Wrong(
        (_name("id"), f"load balancer lb-{digits} does not exist", "allowed: the id of an existing one"),
        {_name("id"): f"lb-{digits}"},
        in_cloud=True,
    )
)
privileged_ports = st.integers(1, 1023).map(
    lambda port: Wrong(("port", f"port {port} is below 1024", "1024-65535"), port={"port": port}, in_cloud=True)
)

# Wrong values are most of what there is to get wrong.
_kinds: list[st.SearchStrategy[Wrong]] = [
    *[wrong_values] * 8,
    *[misspelt_names()] * 4,
    timeouts_beyond_the_interval,
    sctp,
    no_node_ports,
    only_ipv6_clients,
    not_cidrs,
    ipv6_services,
    unknown_ids,
    privileged_ports,
]
mistakes = st.sampled_from(_kinds).flatmap(lambda kind: kind)


def some_mistakes(count: int) -> list[Wrong]:
    """Different mistakes that a cluster's API server lets in, the same ones every time."""
    found: dict[str, Wrong] = {}

    @settings(max_examples=4 * count, derandomize=True, database=None, phases=[Phase.generate], deadline=None)
    @given(mistakes)
    def collect(wrong: Wrong) -> None:
        if not wrong.refused_by_kubernetes:
            found[repr(wrong)] = wrong

    collect()
    return [*found.values()][:count]
