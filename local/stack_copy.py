"""The copy of a stack file that a site's stack runs with: the site's endpoint in plain text, its secrets encrypted.

The copy is private to the user, lies in the state folder and is rewritten before each run; the CLI gets it by
`--config-file`. Its salt stays the same, so that the same key reads the stack's state. One run writes at a time: two
first runs would each create a passphrase, and one's salt with the other's passphrase decrypts nothing.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local.api_site import SiteConfig
from local.pulumi.passphrase import crypter_of, passphrase_of
from local.pulumi.project import ProjectError, read_map
from local.pulumi.secrets import PassphraseCrypter, new_crypter
from local.stack_file import NAMESPACE, read_stack_file
from local.state_folder import write_private


def copy_of(stack_dir: Path) -> Path:
    """The path of a stack's copy; only stacks that a site serves have one."""
    return stack_dir / f"Pulumi.{stack_dir.name}.yaml"


def write_stack_copy(source: Path, stack_dir: Path, site: SiteConfig) -> Path:
    """Write the copy of `source` for a site into `stack_dir` and return its path.

    The copy has the stack's name, whatever `source` is called: the CLI is given that name.

    Raises StackFileError, or SecretsError if the passphrase does not decrypt earlier secrets.
    """
    stack = read_stack_file(source)
    copy = copy_of(stack_dir)
    with _lock(stack_dir):
        # `pulumi stack init` adds a salt, with a passphrase that only secrets of the file need.
        salt = stack.get("encryptionsalt") if _has_secrets(stack["config"]) else None
        crypter = _crypter(salt or _salt_of(copy), stack_dir, source if salt else copy)
        stack["encryptionsalt"] = crypter.salt
        secrets = {key: {"secure": crypter.encrypt(secret)} for key, secret in site.secrets.items()}
        stack["config"] = {**_completed(stack["config"], site), **secrets}
        header = f"# Generated from {source.name} for this folder's site, before every run.\n"
        write_private(copy, header + yaml.dump(stack))
    return copy


def _completed(config: Mapping[str, Any], site: SiteConfig) -> dict[str, Any]:
    found = dict(config)
    makes_cluster = config.get(f"{NAMESPACE}:cluster") != "existing"
    for values in (site.values, site.of_new_clusters if makes_cluster else {}):
        for key, added in values.items():
            found[key] = {**(found[key] if isinstance(found.get(key), dict) else {}), **added}
    return found


def _has_secrets(value: Any) -> bool:
    if isinstance(value, dict):
        return "secure" in value or any(_has_secrets(each) for each in value.values())
    return isinstance(value, list) and any(_has_secrets(each) for each in value)


@contextmanager
def _lock(stack_dir: Path) -> Iterator[None]:
    stack_dir.mkdir(parents=True, exist_ok=True)
    with (stack_dir / "copy.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _crypter(salt: str | None, stack_dir: Path, place: Path) -> PassphraseCrypter:
    """`place`: the file that has the salt."""
    passphrase = passphrase_of(stack_dir, needed=salt is not None, create=True)
    return new_crypter(passphrase) if salt is None else crypter_of(stack_dir, passphrase, salt, place)


def _salt_of(copy: Path) -> str | None:
    """The copy's salt; None without a copy, or with an invalid one, which is rewritten: the state has its own salt."""
    try:
        salt = read_map(copy).get("encryptionsalt")
    except ProjectError:
        return None
    return str(salt) if salt else None
