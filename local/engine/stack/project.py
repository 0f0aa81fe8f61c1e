"""The project and the stack's configuration: Pulumi.yaml and Pulumi.STACK.yaml, checked and completed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from cloud_controller import yaml_text
from local.engine.stack.secrets import Crypter
from local.engine.values import PropertyMap, Secret

PLACEHOLDER: Final = "[placeholder]"
"""What stands for each secret in a preview that has no passphrase."""

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class ProjectError(Exception):
    """The project or the stack's file is wrong; the message names the file, the key and what is allowed."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key of the project's config schema. `default` None: the stack must set it."""

    name: str
    type: str
    default: Any = None
    secret: bool = False
    items: str = ""


@dataclass(frozen=True, slots=True)
class Project:
    """Pulumi.yaml as far as the engine needs it."""

    name: str
    directory: Path
    main: Path
    stack_config_dir: Path
    schema: Mapping[str, ConfigKey] = field(default_factory=dict)
    """By full key (`project:key`)."""


@dataclass(frozen=True, slots=True)
class StackFile:
    """Pulumi.STACK.yaml: the raw config (secure values still encrypted) and the salt of its passphrase."""

    path: Path
    config: Mapping[str, Any]
    salt: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """A stack's whole config by full key, each value as text (objects as JSON), secrets told apart."""

    values: Mapping[str, str]
    secret_keys: frozenset[str] = frozenset()

    def as_properties(self, namespace: str = "") -> PropertyMap:
        """As a property map, for a provider: of one namespace (without it in the keys), or whole."""
        chosen = {
            k.removeprefix(f"{namespace}:") if namespace else k: k
            for k in sorted(self.values)
            if not namespace or k.startswith(f"{namespace}:")
        }
        return {name: Secret(self.values[k]) if k in self.secret_keys else self.values[k] for name, k in chosen.items()}

    def masked(self) -> dict[str, str]:
        """For people: [secret] for secrets."""
        return {k: "[secret]" if k in self.secret_keys else v for k, v in sorted(self.values.items())}


def load_project(directory: Path) -> Project:
    """Read Pulumi.yaml. Raises ProjectError."""
    path = directory / "Pulumi.yaml"
    data = _read(path)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise ProjectError(f"{path}: `name` is missing")
    runtime = data.get("runtime")
    runtime_name = runtime.get("name") if isinstance(runtime, dict) else runtime
    if runtime_name != "python":
        raise ProjectError(f"{path}: runtime is {runtime_name!r}; this engine runs `python` programs only")
    config = data.get("config") or {}
    if not isinstance(config, dict):
        raise ProjectError(f"{path}: `config` must be a map of keys to their types")
    schema = {}
    for key, entry in config.items():
        full = _qualify(key, name)
        schema[full] = _schema_key(path, full, entry)
    main = directory / str(data.get("main") or ".")
    return Project(name, directory, main, directory / str(data.get("stackConfigDir") or "."), schema)


def load_stack_file(project: Project, stack: str, path: Path | None = None) -> StackFile:
    """Read the stack's file: `path`, or Pulumi.STACK.yaml in the project's stackConfigDir. Raises ProjectError."""
    chosen = path or project.stack_config_dir / f"Pulumi.{stack}.yaml"
    if not chosen.exists():
        known = sorted(p.name.split(".")[1] for p in project.stack_config_dir.glob("Pulumi.*.yaml"))
        hint = f"; there are: {', '.join(known)}" if known else ""
        raise ProjectError(f"stack {stack!r} has no file {chosen}{hint}")
    data = _read(chosen)
    config = data.get("config") or {}
    if not isinstance(config, dict):
        raise ProjectError(f"{chosen}: `config` must be a map of keys to values")
    qualified = {_qualify(str(key), project.name): value for key, value in config.items()}
    return StackFile(chosen, qualified, str(data.get("encryptionsalt") or ""))


def resolve(project: Project, stack_file: StackFile, crypter: Crypter | None) -> Config:
    """Decrypt, complete with the schema's defaults and check. Without a crypter, secrets become PLACEHOLDER.

    Raises ProjectError for an unknown key, a missing or an ill-typed value; SecretsError for an unreadable one.
    """
    path = stack_file.path
    for key in stack_file.config:
        _check_known(project, path, key)
    values: dict[str, str] = {}
    secret_keys: set[str] = set()
    for key, raw in stack_file.config.items():
        value, secret = _decrypt(raw, crypter)
        schema = project.schema.get(key)
        if schema is not None and schema.secret and not secret:
            raise ProjectError(f"{path}: {key} must be encrypted, for it is secret: pulumi config set --secret {key}")
        if schema is not None and value != PLACEHOLDER:
            value = _typed(path, schema, value, secret=secret or schema.secret)
        values[key] = _text(value)
        if secret:
            secret_keys.add(key)
    for key, schema in project.schema.items():
        if key in values:
            continue
        if schema.default is None:
            raise ProjectError(f"{path}: {key} is not set; it has no default (type {schema.type})")
        values[key] = _text(schema.default)
        if schema.secret:
            secret_keys.add(key)
    return Config(values, frozenset(secret_keys))


class _Loader(yaml.SafeLoader):
    """Dates are texts: config goes to the program as text or JSON, which has no dates."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_text(), _Loader)
    except FileNotFoundError as error:
        raise ProjectError(f"{path} does not exist") from error
    except yaml.YAMLError as error:
        raise ProjectError(f"{path} is {yaml_text.told(error)}") from None
    if not isinstance(data or {}, dict):
        raise ProjectError(f"{path} must hold a map")
    return data or {}


def _qualify(key: str, project: str) -> str:
    return key if ":" in key else f"{project}:{key}"


def _schema_key(path: Path, key: str, entry: Any) -> ConfigKey:
    if not isinstance(entry, dict):
        # The short form `key: value` gives a default and nothing else.
        return ConfigKey(key, _type_name(entry), entry)
    default = entry.get("default", entry.get("value"))
    type_name = str(entry.get("type") or _type_name(default))
    if type_name not in _TYPES:
        raise ProjectError(f"{path}: config {key} has type {type_name!r}; allowed: {', '.join(_TYPES)}")
    items = entry.get("items") or {}
    item_type = str(items.get("type", "")) if isinstance(items, dict) else str(items)
    if item_type and item_type not in _TYPES:
        raise ProjectError(f"{path}: config {key} has items of type {item_type!r}; allowed: {', '.join(_TYPES)}")
    schema = ConfigKey(key, type_name, default, bool(entry.get("secret")), item_type)
    if default is not None:
        _typed(path, schema, default, secret=schema.secret)
    return schema


def _type_name(value: Any) -> str:
    return next((name for name, types in _TYPES.items() if type(value) in types), "string")


def _check_known(project: Project, path: Path, key: str) -> None:
    # Other namespaces belong to providers; a project without a schema takes what it is given.
    if not project.schema or key in project.schema or not key.startswith(f"{project.name}:"):
        return
    raise ProjectError(f"{path}: unknown config key {key!r}{_nearest(key, project.schema)}")


def _nearest(key: str, known: Iterable[str]) -> str:
    # Without the namespace, which all have in common and which would make any two alike.
    names = {k.partition(":")[2]: k for k in sorted(known)}
    close = difflib.get_close_matches(key.partition(":")[2], names, n=1, cutoff=0.6)
    return f"; did you mean {names[close[0]]!r}?" if close else f"; known: {', '.join(names.values())}"


def _decrypt(raw: Any, crypter: Crypter | None) -> tuple[Any, bool]:
    """The value, and whether a secret stands in it."""
    if isinstance(raw, dict):
        if set(raw) == {"secure"} and isinstance(raw["secure"], str):
            return (crypter.decrypt(raw["secure"]) if crypter else PLACEHOLDER), True
        pairs = {k: _decrypt(v, crypter) for k, v in raw.items()}
        return {k: v for k, (v, _) in pairs.items()}, any(s for _, s in pairs.values())
    if isinstance(raw, list):
        items = [_decrypt(v, crypter) for v in raw]
        return [v for v, _ in items], any(s for _, s in items)
    return raw, False


def _typed(path: Path, schema: ConfigKey, value: Any, *, secret: bool) -> Any:
    """The value if it fits; a text (from `pulumi config set`) is read as the type that the schema names."""
    read = value
    if isinstance(value, str) and schema.type != "string":
        try:
            read = json.loads(value)
        except json.JSONDecodeError:
            read = value
    fits = isinstance(read, _TYPES[schema.type]) and not (schema.type == "integer" and isinstance(read, bool))
    if schema.type == "string" and isinstance(read, int | float):
        return _text(read)
    if fits and schema.items and isinstance(read, list):
        fits = all(isinstance(item, _TYPES[schema.items]) for item in read)
    if not fits:
        shown = "[secret]" if secret else json.dumps(value)
        of = f" of {schema.items}" if schema.items else ""
        raise ProjectError(f"{path}: {schema.name} is {shown}, but must be of type {schema.type}{of}")
    return read


def _text(value: Any) -> str:
    # As the CLI hands config to a program: text as it is, everything else as JSON.
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
