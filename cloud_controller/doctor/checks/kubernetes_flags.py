"""Whether Kubernetes' own components leave the cloud to the CCM, and agree with it on the pods' ranges.

Their flags are seen where they run as pods of kube-system, as with kubeadm. Elsewhere the nodes show what came of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from cloud_controller import yaml_text
from cloud_controller.clouds.common.versions import minor
from cloud_controller.doctor.checks.nodes import age, ours, uninitialised
from cloud_controller.doctor.findings import Check, Finding, Severity
from cloud_controller.doctor.seen import Seen, joined
from cloud_controller.kube import CONFIG_MAPS, PODS, Object, key, name

_NAMESPACE = "kube-system"
_API_SERVER, _CONTROLLER_MANAGER, _PROXY = "kube-apiserver", "kube-controller-manager", "kube-proxy"
_WITHOUT_CLOUD, _REFUSED = 29, 33
"""Minor versions since which kube-apiserver needs no cloud flags, and refuses them. Source: kubernetes#130162."""
_SHOWN = 5

_Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class _Component:
    name: str
    pod: Object
    flags: Mapping[str, str]


def _run(seen: Seen) -> Iterator[Finding]:
    components = [each for pod in seen.list(PODS, _NAMESPACE) for each in _components(pod)]
    ranges = _networks(seen.argument("--cluster-cidr"))
    for each in components:
        if each.name == _API_SERVER:
            yield from _api_server(each, minor(seen.version()["gitVersion"]))
        elif each.name == _CONTROLLER_MANAGER:
            yield from _controller_manager(seen, each, ranges)
    yield from _kubelets(seen)
    yield from _node_ranges(seen, ranges)
    yield from _proxy(seen, components, ranges)


def _api_server(component: _Component, version: int | None) -> Iterator[Finding]:
    given = [f"--{flag}" for flag in ("cloud-provider", "cloud-config") if flag in component.flags]
    if given and version is not None and version >= _WITHOUT_CLOUD:
        refused = version >= _REFUSED
        yield Finding(
            subject=f"pod/{key(component.pod)}",
            what=f"kube-apiserver has {' and '.join(given)}, "
            + (f"with which it does not start since 1.{_REFUSED}" if refused else f"refused from 1.{_REFUSED} on"),
            evidence=_shown(component, "cloud-provider", "cloud-config"),
            remedy="remove the flag",
            severity=Severity.CRITICAL if refused else Severity.WARNING,
        )


def _controller_manager(seen: Seen, component: _Component, ranges: frozenset[_Network]) -> Iterator[Finding]:
    subject = f"pod/{key(component.pod)}"
    provider = component.flags.get("cloud-provider", "")
    if provider != "external":
        yield Finding(
            subject=subject,
            what="kube-controller-manager does not run with --cloud-provider=external",
            evidence=_shown(component, "cloud-provider") or ("it has no --cloud-provider",),
            remedy="set --cloud-provider=external, so that it leaves the cloud to the CCM",
            severity=Severity.CRITICAL if provider else Severity.WARNING,
        )
    if "route" not in seen.daemon().controllers:
        return
    if component.flags.get("allocate-node-cidrs", "false").lower() != "true":
        yield Finding(
            subject=subject,
            what="kube-controller-manager gives nodes no pod ranges, so the CCM's route controller has no routes",
            evidence=_shown(component, "allocate-node-cidrs") or ("it has no --allocate-node-cidrs",),
            remedy="set --allocate-node-cidrs=true and --cluster-cidr",
        )
    allocated = _networks(component.flags.get("cluster-cidr", ""))
    if allocated and ranges and allocated != ranges:
        yield Finding(
            subject=subject,
            what="kube-controller-manager and the CCM differ in --cluster-cidr",
            evidence=(*_shown(component, "cluster-cidr"), f"the CCM has --cluster-cidr={_text(ranges)}"),
            remedy="give both the same range",
        )


def _kubelets(seen: Seen) -> Iterator[Finding]:
    for node in ours(seen):
        if not node["spec"].get("providerID") and not uninitialised(node) and age(seen, node) >= seen.grace:
            yield Finding(
                subject=f"node/{name(node)}",
                what="its kubelet did not register it with --cloud-provider=external, so the CCM never initialises it",
                evidence=("it has neither a provider ID nor the taint uninitialized",),
                remedy="start the kubelet with --cloud-provider=external, then delete the Node: it registers again",
            )


def _node_ranges(seen: Seen, ranges: frozenset[_Network]) -> Iterator[Finding]:
    routes = seen.workload() is not None and "route" in seen.daemon().controllers
    outside = [node for node in ours(seen) if ranges and not _within(node, ranges)]
    if outside:
        yield Finding(
            what=f"the pod ranges of {len(outside)} nodes are outside of the CCM's --cluster-cidr={_text(ranges)}",
            evidence=tuple(f"node {name(node)}: {', '.join(_pod_ranges(node))}" for node in outside[:_SHOWN]),
            remedy="give the CCM the range from which kube-controller-manager allocates",
            severity=Severity.CRITICAL if routes else Severity.WARNING,
        )
    without = [node for node in ours(seen) if routes and not _pod_ranges(node) and age(seen, node) >= seen.grace]
    if without:
        yield Finding(
            what=f"{len(without)} nodes have no pod range, so the CCM's route controller makes no route for them",
            evidence=tuple(f"node {name(node)}: no spec.podCIDRs" for node in without[:_SHOWN]),
            remedy="run kube-controller-manager with --allocate-node-cidrs=true and a --cluster-cidr that is not used "
            "up (--node-cidr-mask-size)",
        )


def _proxy(seen: Seen, components: Sequence[_Component], ranges: frozenset[_Network]) -> Iterator[Finding]:
    proxies = [each for each in components if each.name == _PROXY]
    if not proxies:
        return
    flags = dict(proxies[0].flags)
    config = seen.get(CONFIG_MAPS, _PROXY, _NAMESPACE)
    if config is not None and "config" in flags:
        flags = _of_config((config.get("data") or {}).get("config.conf", "")) | flags
    given = _networks(flags.get("cluster-cidr", ""))
    if given and ranges and given != ranges:
        yield Finding(
            what="kube-proxy and the CCM differ in the cluster CIDR",
            evidence=(f"kube-proxy has {_text(given)}", f"the CCM has --cluster-cidr={_text(ranges)}"),
            remedy="give both the same range",
            severity=Severity.WARNING,
        )
    address = flags.get("healthz-bind-address", "")
    if address.startswith(("127.", "[::1]", "localhost")) or address.endswith(":0"):
        yield Finding(
            what="kube-proxy's health check is not served where load balancers ask for it",
            evidence=(f"its health check is at {address}",),
            remedy="leave healthzBindAddress at 0.0.0.0:10256",
        )


def _of_config(text: str) -> dict[str, str]:
    """Of a KubeProxyConfiguration, what the flags would say."""
    try:
        found = yaml_text.load(text)
    except yaml_text.NotYaml:
        return {}
    names = {"clusterCIDR": "cluster-cidr", "healthzBindAddress": "healthz-bind-address"}
    return {flag: str(found[field]) for field, flag in names.items() if isinstance(found, dict) and found.get(field)}


def _components(pod: Object) -> Iterator[_Component]:
    for container in pod["spec"].get("containers") or ():
        words: list[str] = [*(container.get("command") or ()), *(container.get("args") or ()), ""]
        component = words[0].rpartition("/")[2]
        if component in (_API_SERVER, _CONTROLLER_MANAGER, _PROXY):
            flags = (word.removeprefix("--").partition("=") for word in joined(words))
            yield _Component(component, pod, {flag: value if equals else "true" for flag, equals, value in flags})


def _shown(component: _Component, *flags: str) -> tuple[str, ...]:
    return tuple(f"it has --{flag}={component.flags[flag]}" for flag in flags if flag in component.flags)


def _pod_ranges(node: Object) -> list[str]:
    spec = node["spec"]
    return list(spec.get("podCIDRs") or filter(None, [spec.get("podCIDR")]))


def _within(node: Object, ranges: frozenset[_Network]) -> bool:
    return all(
        any(pods.version == each.version and each.supernet_of(pods) for each in ranges)  # type: ignore[arg-type]
        for pods in (ip_network(each, strict=False) for each in _pod_ranges(node))
    )


def _networks(text: str) -> frozenset[_Network]:
    """The ranges of a comma-separated text; none if one is malformed, which the component itself refuses."""
    found = set()
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            found.add(ip_network(part, strict=False))
        except ValueError:
            return frozenset()
    return frozenset(found)


def _text(ranges: frozenset[_Network]) -> str:
    return ",".join(sorted(map(str, ranges)))


CHECK = Check(
    name="kubernetes-flags",
    holds="Kubernetes' components leave the cloud to the CCM and agree with it on the pods' ranges",
    why="nodes whose kubelet is not `external` never get their machine's data; two ranges of pods mean pods that "
    "nothing routes to",
    lines=("11.1.9", "11.1.10", "11.1.11"),
    page="runbooks/kubernetes-flags.md",
    run=_run,
    after=frozenset({"api-server"}),
)
