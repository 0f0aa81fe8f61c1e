"""Access to a stack's cluster: its kubeconfig, kubectl, and a pod's log without kubectl."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import yaml
from urllib3.exceptions import HTTPError

from cloud_controller.kube import PODS, ApiError, Kube, KubeconfigError, key
from cloud_controller.kube.config import from_kubeconfig
from cloud_controller.kube.transport import Transport
from local.errors import SiteError
from local.state_folder import StateFolder, write_private

ADMIN_KUBECONFIG = "admin.kubeconfig"
"""The file that each control plane writes into its folder."""

_RUNNING = "CLOUD_CONTROLLER_KUBECTL"
"""The variable that tells a kubectl's own children which one is running: a wrapper of this command must not recurse."""

SILENCE_SECONDS = 24 * 60 * 60.0
"""A followed log ends after this long without output."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call of `kubeconfig`, `kubectl` with its arguments, or `logs` with a pod."""

    command: str
    pod: str = ""
    follow: bool = False
    words: Sequence[str] = ()


def admin_kubeconfigs(folder: StateFolder) -> dict[str, Path]:
    """The kubeconfigs of the site's clusters, by the names of their folders."""
    clusters = folder.cluster("x").parent
    return {path.parent.name: path for path in sorted(clusters.glob(f"*/{ADMIN_KUBECONFIG}"))}


def run(request: Request, folder: StateFolder, stack_dir: Path, cluster_id: str | None) -> int:
    """Run the command on the stack's cluster; the exit code. Raises SiteError."""
    kubeconfig = write_kubeconfig(folder, stack_dir, cluster_id)
    if request.command == "kubectl":
        return _run_kubectl(kubeconfig, request.words)
    if request.command == "logs":
        _show_logs(kubeconfig, request.pod, follow=request.follow)
    else:
        print(f"{kubeconfig} has admin access to the cluster of stack {stack_dir.name!r}", file=sys.stderr)
        print(f"export KUBECONFIG={shlex.quote(str(kubeconfig))}")
    return 0


def write_kubeconfig(folder: StateFolder, stack_dir: Path, cluster_id: str | None) -> Path:
    """Write the kubeconfig of a stack's cluster into the stack's folder. Raises SiteError if it has none here."""
    # A cluster's folder is named by its id; a cloud may identify a cluster by its name instead.
    found = admin_kubeconfigs(folder)
    source = next(
        (path for folder, path in found.items() if cluster_id in (folder, cluster_name(path.read_text()))), None
    )
    if source is None:
        raise SiteError(
            f"stack {stack_dir.name!r} has no cluster on this machine; `make up` creates one for a stack that a "
            "local site serves"
        )
    path = stack_dir / "kubeconfig"
    write_private(path, source.read_text())
    return path


def cluster_name(kubeconfig: str) -> str:
    """The name of the cluster in a kubeconfig."""
    return str(yaml.safe_load(kubeconfig)["clusters"][0]["name"])


def _run_kubectl(kubeconfig: Path, words: Sequence[str]) -> int:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise SiteError(
            "kubectl is not on PATH: install your distribution's package (kubectl or kubernetes-client), or follow the "
            'page "Install Tools" of the Kubernetes documentation; `make logs POD=...` works without it'
        )
    if os.environ.get(_RUNNING) == kubectl:
        raise SiteError(
            f"{kubectl} runs this command itself; put the folder of the real kubectl before its own on PATH"
        )
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), _RUNNING: kubectl}
    return subprocess.run([kubectl, *words], env=environment, check=False).returncode


def _show_logs(kubeconfig: Path, pod: str, *, follow: bool) -> None:
    """Print the log of a pod: NAMESPACE/NAME, or a unique NAME."""
    try:
        with closing(Kube.from_file(kubeconfig)) as kube:
            where, _, what = _only([key(each) for each in kube.list(PODS).items], pod).partition("/")
        for chunk in _log(kubeconfig, f"/api/v1/namespaces/{where}/pods/{what}/log", follow=follow):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    except (ApiError, KubeconfigError) as error:
        raise SiteError(str(error)) from error
    except HTTPError as error:
        raise SiteError(f"could not read the log of {pod} to its end: {error}") from error


def _only(pods: Sequence[str], wanted: str) -> str:
    """The wanted pod as NAMESPACE/NAME. Raises SiteError, which lists the candidates."""
    found = [each for each in pods if wanted in (each, each.partition("/")[2])]
    if len(found) == 1:
        return found[0]
    if not wanted:
        problem = "POD is missing"
    else:
        problem = f"POD is {wanted!r}: {len(found)} pods have this name" if found else f"POD is {wanted!r}: no such pod"
    known = "".join(f"\n  {each}" for each in sorted(found or pods)) or " none"
    raise SiteError(f"{problem}; pods:{known}")


def _log(kubeconfig: Path, path: str, *, follow: bool) -> Iterator[bytes]:
    query: Mapping[str, str] = {"follow": "true"} if follow else {}
    with closing(Transport(from_kubeconfig(kubeconfig.read_text()), attempts=1)) as transport:
        answer = transport.stream(path, query, f"GET {path}", SILENCE_SECONDS)
        while chunk := answer.read1():
            yield chunk
