"""The copy of a stack file that tells the program where the site is: endpoint in plain, secrets encrypted.

The copy lies in the state folder, readable by its user alone, and is written anew before each run. Its salt stays, so
that the stack's state can be read with the same key. Any engine can use it (`--config-file`). One run at a time writes:
two first ones would each make a passphrase, and the salt of one with the passphrase of the other opens nothing.
"""

from __future__ import annotations

import difflib
import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cloud_controller import yaml_text
from local.engine.stack.config import in_plain_text, resolve, validate
from local.engine.stack.project import ProjectError, StackFile, load_project
from local.engine.stack.secrets import PassphraseCrypter, new_crypter
from local.engine.stack.session import crypter_of, passphrase_of
from local.state_folder import write_private

NAMESPACE = "cloud-controller"
SCHEMA = Path(__file__).parents[1] / "stacks/schema.json"
"""What a stack file may hold; made of the program's own config classes."""
CLOUDS = ("aws", "mycloud")
"""All that there are, for a message; a local site runs `mycloud`, and `aws` where it is simulated."""


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """What a site adds to the config of a stack that runs on it: keys with values, and keys with secrets."""

    values: Mapping[str, Mapping[str, str]]
    secrets: Mapping[str, str] = field(repr=False)


class StackFileError(Exception):
    """The stack's file is missing or not for a local site; the message says what is wrong and what there is."""


def copy_of(stack_dir: Path) -> Path:
    """Where a site's copy of the stack's file is; only stacks that a site serves have one."""
    return stack_dir / f"Pulumi.{stack_dir.name}.yaml"


def write_stack_copy(source: Path, stack_dir: Path, site: SiteConfig) -> Path:
    """Write the copy of `source` for a site into `stack_dir` and return its path.

    It has the stack's name, whatever file it was made from: that is the one that the engine is given.

    Raises StackFileError, or SecretsError if the passphrase is not the one that earlier secrets were made with.
    """
    stack = read_stack_file(source)
    copy = copy_of(stack_dir)
    with _lock(stack_dir):
        salt = stack.get("encryptionsalt")
        crypter = _crypter(salt or _salt_of(copy), stack_dir, source if salt else copy)
        stack["encryptionsalt"] = crypter.salt
        secrets = {key: {"secure": crypter.encrypt(secret)} for key, secret in site.secrets.items()}
        stack["config"] = {**_completed(stack["config"], site.values), **secrets}
        write_private(
            copy, f"# Made from {source.name} for the site of this folder, before every run.\n" + yaml.dump(stack)
        )
    return copy


def check_stack_file(source: Path, project_dir: Path) -> None:
    """Check the file that people write, before anything is started: no error shall send them to the copy.

    Raises StackFileError.
    """
    config = read_stack_file(source)["config"]
    _refuse_unknown(source, config)
    known = _known()
    try:
        project = load_project(project_dir)
        stack_file = StackFile(_stack_of(source), source, config)
        for key, value in config.items():
            if not key.startswith(f"{NAMESPACE}:"):
                continue
            if known[key].get("required") == ["secure"] and not (isinstance(value, dict) and "secure" in value):
                raise StackFileError(f"{_place(source, key)}: {in_plain_text(project, stack_file, key)}")
        validate(project, stack_file, resolve(project, stack_file, None))
    except ProjectError as error:
        raise StackFileError(str(error)) from error


def _known() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = json.loads(SCHEMA.read_text())["properties"]["config"]["properties"]
    return schema


def _refuse_unknown(source: Path, config: Iterable[str]) -> None:
    known = _known()
    for key in config:
        if key.startswith(f"{NAMESPACE}:") and key not in known:
            raise StackFileError(f"{_place(source, key)}: unknown config key {key!r}{_nearest(key, known)}")


def _nearest(key: str, known: Iterable[str]) -> str:
    # Without the namespace, which all have in common and which would make any two alike.
    names = {k.partition(":")[2]: k for k in sorted(known)}
    close = difflib.get_close_matches(key.partition(":")[2], names, n=1, cutoff=0.6)
    return f"; did you mean {names[close[0]]!r}?" if close else f"; known: {', '.join(names.values())}"


def _place(source: Path, key: str) -> str:
    """The file and the line of a key of its config, which may stand there without the namespace."""
    lines = yaml_text.lines(source.read_text())
    line = lines.get(f"config.{key}") or lines.get(f"config.{key.partition(':')[2]}") or lines["config"]
    return f"{source}:{line}"


def _stack_of(source: Path) -> str:
    return source.name.removeprefix("Pulumi.").removesuffix(".yaml")


def read_stack_file(source: Path) -> dict[str, Any]:
    """The stack file, if its stack is for a local site. Raises StackFileError."""
    try:
        stack = yaml_text.load(source.read_text())
    except FileNotFoundError:
        known = ", ".join(sorted(path.name.split(".")[1] for path in source.parent.glob("Pulumi.*.yaml"))) or "none"
        raise StackFileError(f"there is no stack {_stack_of(source)!r} ({source}); there are: {known}") from None
    except OSError as error:
        raise StackFileError(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise StackFileError(f"{source} is not text") from None
    except yaml_text.NotYaml as error:
        raise StackFileError(f"{source} is {error}") from None
    config = stack.get("config") if isinstance(stack, dict) else None
    if not isinstance(config, dict):
        raise StackFileError(f"{source} has no map `config`")
    config = _qualified(config)
    if not _is_for_a_site(config):
        cloud = config.get(f"{NAMESPACE}:cloud")
        if cloud is None:
            _refuse_unknown(source, config)  # it may be there, misspelt
        if cloud not in CLOUDS:
            wrong = "is missing" if cloud is None else f"is {json.dumps(cloud, default=str)}"
            place = _place(source, f"{NAMESPACE}:cloud")
            raise StackFileError(f"{place}: {NAMESPACE}:cloud {wrong}; allowed: {', '.join(CLOUDS)}")
        raise StackFileError(
            f"{source}: {NAMESPACE}:cloud is {cloud!r}, and a local site has nothing but 'mycloud', and 'aws' where "
            f"{NAMESPACE}:aws says `simulated: true`; run the stack with `python -m local.engine` or `pulumi`"
        )
    return {**stack, "config": config}


def needs_no_site(source: Path) -> bool:
    """Whether no local site stands in for the cloud of this stack file. One that is wrong is told elsewhere."""
    try:
        stack = yaml_text.load(source.read_text())
    except (OSError, ValueError):
        return False
    config = stack.get("config") if isinstance(stack, dict) else None
    if not isinstance(config, dict):
        return False
    config = _qualified(config)
    return config.get(f"{NAMESPACE}:cloud") == "aws" and not _is_for_a_site(config)


def _qualified(config: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key) if ":" in str(key) else f"{NAMESPACE}:{key}": value for key, value in config.items()}


def _is_for_a_site(config: Mapping[str, Any]) -> bool:
    cloud, aws = config.get(f"{NAMESPACE}:cloud"), config.get(f"{NAMESPACE}:aws")
    return cloud == "mycloud" or (cloud == "aws" and isinstance(aws, dict) and aws.get("simulated") is True)


def simulated_region(source: Path) -> str | None:
    """The region of a stack for a simulated AWS; None of a stack for mycloud. Raises StackFileError."""
    config = read_stack_file(source)["config"]
    return str(config[f"{NAMESPACE}:aws"].get("region")) if config[f"{NAMESPACE}:cloud"] == "aws" else None


def _completed(config: Mapping[str, Any], values: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The config with what only the site knows."""
    given = {key: config[key] if isinstance(config.get(key), dict) else {} for key in values}
    return {**config, **{key: {**given[key], **added} for key, added in values.items()}}


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
    """The copy's; None without one, or if somebody spoilt it: it is written anew, and the state has its own."""
    try:
        stack = yaml_text.load(copy.read_text())
    except (FileNotFoundError, yaml_text.NotYaml):
        return None
    salt = stack.get("encryptionsalt") if isinstance(stack, dict) else None
    return str(salt) if salt else None
