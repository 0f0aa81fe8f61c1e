"""The last step before a container's process: a script that makes its mounts and then execs its command.

Run as `python -I -S sandbox.py SPEC_FD STATUS_FD`, so it imports the standard library only. It reads a JSON spec from
SPEC_FD and execs; if that fails it writes the reason to STATUS_FD, which exec closes. The process dies with its machine
(PR_SET_PDEATHSIG), however the machine dies.

Where permitted, the mounts are made in a private mount namespace (in a user namespace of its own unless the caller is
privileged): a new root of tmpfs shows everything of the old root in its place, bind-mounted, and the pod's volumes at
the container's mount paths. A directory without the needed mount point is rebuilt entry by entry, so nothing is ever
written to the host's file system.
"""

# Each container waits for this script, and importing pathlib would be a good part of its time.
# ruff: noqa: PTH102, PTH103, PTH112, PTH115, PTH116, PTH118, PTH120, PTH123, PTH211

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import sys
from typing import Any, TypedDict

PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384
MS_UNBINDABLE, MS_PRIVATE = 1 << 17, 1 << 18
# What a bind mount must keep when it is remounted inside a user namespace; statvfs returns them with the same values.
_LOCKED_FLAGS = 2 | 4 | 8 | 1024 | 2048  # nosuid, nodev, noexec, noatime, nodiratime

LAUNCH_FAILED = 128


class SandboxMount(TypedDict):
    """Bind `source` at `target`, an absolute path of the container."""

    source: str
    target: str
    read_only: bool


class SandboxSpec(TypedDict):
    """The script's task; `root` is an empty directory for the new root, None for no namespace."""

    argv: list[str]
    cwd: str | None
    parent: int
    terminal: bool
    root: str | None
    mounts: list[SandboxMount]


Tree = dict[str, Any]
"""Mount points as nested directories: name -> Tree, or name -> SandboxMount at a mount point."""


def main() -> None:
    """Entry point of the script."""
    spec_fd, status_fd = int(sys.argv[1]), int(sys.argv[2])
    with os.fdopen(spec_fd, "rb") as file:
        spec: SandboxSpec = json.load(file)
    os.set_inheritable(status_fd, False)
    try:
        launch(spec)
    except OSError as error:
        os.write(status_fd, str(error).encode())
        raise SystemExit(LAUNCH_FAILED) from None


def launch(spec: SandboxSpec) -> None:
    """Make the mounts and exec. Raises OSError."""
    if spec["terminal"]:  # a session leader's first one becomes its controlling terminal
        os.close(os.open(os.ttyname(0), os.O_RDWR))
    if spec["root"] is not None:
        enter_namespace()
        build_root(spec["root"], spec["mounts"])
    # After the namespaces: a change of credentials clears the setting.
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != spec["parent"]:
        raise ProcessLookupError("the machine is gone")
    if spec["cwd"]:
        os.chdir(spec["cwd"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them; a command expects the default
        signal.signal(number, signal.SIG_DFL)
    os.execvp(spec["argv"][0], spec["argv"])


def enter_namespace() -> None:
    """Enter a private mount namespace, for a user by way of a user namespace. Raises OSError if not allowed."""
    uid, gid = os.getuid(), os.getgid()
    try:
        _call("unshare", CLONE_NEWNS)
    except PermissionError:
        _call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    _mount(None, "/", None, MS_REC | MS_PRIVATE)


def build_root(root: str, mounts: list[SandboxMount]) -> None:
    """Make `root` the file system that the container sees, and change into it."""
    _mount("tmpfs", root, "tmpfs", 0, "mode=755")
    # Otherwise each later bind of a directory above `root` would copy the mounts made so far.
    _mount(None, root, None, MS_UNBINDABLE)
    tree, nested = mount_tree(mounts)
    _fill("/", root, tree)
    for mount in nested:  # their mount points are in volumes, which are writable and the pod's own
        place = root + os.path.realpath(mount["target"])
        _make_mount_point(place, directory=os.path.isdir(mount["source"]))
        _bind(mount["source"], place, read_only=mount["read_only"])
    os.chroot(root)
    os.chdir("/")


def mount_tree(mounts: list[SandboxMount]) -> tuple[Tree, list[SandboxMount]]:
    """The mount points as a tree, with links resolved; and those inside another mount."""
    tree: Tree = {}
    nested: list[SandboxMount] = []
    for mount in sorted(mounts, key=lambda m: m["target"].count("/")):
        parts = [part for part in os.path.realpath(mount["target"]).split("/") if part]
        if not parts:
            raise OSError(f"{mount['target']}: a volume cannot be mounted at the root")
        node = tree
        for part in parts[:-1]:
            node = node.setdefault(part, {})
            if "source" in node:
                break
        if "source" in node:
            nested.append(mount)
        elif parts[-1] in node:
            raise OSError(f"{mount['target']}: two volumes are mounted there")
        else:
            node[parts[-1]] = dict(mount)
    return tree, nested


def _fill(old: str, new: str, tree: Tree) -> None:
    """Show the entries of directory `old` in `new`, except those that `tree` replaces."""
    try:
        entries = {entry.name: entry for entry in os.scandir(old)}
    except FileNotFoundError:
        entries = {}
    for name, entry in entries.items():
        if name in tree:
            continue
        place = os.path.join(new, name)
        try:
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
                continue
            is_directory = entry.is_dir()
            _make_mount_point(place, directory=is_directory)
            _bind(entry.path, place, read_only=False)
        except FileNotFoundError:
            continue  # it was removed meanwhile
    for name, wanted in tree.items():
        place = os.path.join(new, name)
        if "source" in wanted:
            _make_mount_point(place, directory=stat.S_ISDIR(os.stat(wanted["source"]).st_mode))
            _bind(wanted["source"], place, read_only=wanted["read_only"])
        else:
            os.mkdir(place)
            _fill(os.path.join(old, name), place, wanted)


def _make_mount_point(path: str, *, directory: bool) -> None:
    if directory:
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def _bind(source: str, target: str, *, read_only: bool) -> None:
    _mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        kept = os.statvfs(target).f_flag & _LOCKED_FLAGS
        _mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, options)]
    try:
        _call("mount", encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    except OSError as error:
        raise OSError(error.errno, f"mount {source or ''} at {target}: {error.strerror}") from None


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _call(name: str, *args: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
