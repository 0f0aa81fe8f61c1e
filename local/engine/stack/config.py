"""A stack's config: the values of its file with the defaults of Pulumi.yaml, checked by the CLI's rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from local.engine.stack.project import Project, ProjectError, StackFile
from local.engine.stack.secrets import Crypter, SecretsError
from local.plugins.values import PLACEHOLDER, PropertyMap, Secret


@dataclass(frozen=True, slots=True)
class Config:
    """A stack's whole config by full key, each value as text (objects as JSON), with the set of secret keys."""

    values: Mapping[str, str]
    secret_keys: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    """The keys whose text is JSON: lists and maps."""
    warnings: tuple[str, ...] = ()

    def as_properties(self, namespace: str = "") -> PropertyMap:
        """As a property map for a provider: of one namespace (without it in the keys), or whole."""
        chosen = {
            k.removeprefix(f"{namespace}:") if namespace else k: k
            for k in sorted(self.values)
            if not namespace or k.startswith(f"{namespace}:")
        }
        return {name: Secret(self.values[k]) if k in self.secret_keys else self.values[k] for name, k in chosen.items()}

    def masked(self) -> dict[str, str]:
        """For people: [secret] in place of secrets."""
        return {k: "[secret]" if k in self.secret_keys else v for k, v in sorted(self.values.items())}


def resolve(project: Project, stack_file: StackFile, crypter: Crypter | None) -> Config:
    """Decrypt, and add the declared defaults. Without a crypter, secrets become PLACEHOLDER.

    Raises SecretsError for a value that cannot be decrypted.
    """
    values: dict[str, str] = {}
    secret_keys: set[str] = set()
    objects: set[str] = set()
    warnings: list[str] = []
    for key, raw in stack_file.config.items():
        try:
            value, secret = _decrypt(raw, crypter)
        except SecretsError as error:
            raise SecretsError(f"{stack_file.path}: {key}: {error}") from error
        values[key] = _text(value)
        if isinstance(value, dict | list):
            objects.add(key)
        if secret:
            secret_keys.add(key)
        if value is None:
            warnings.append(
                f'No value for configuration key "{key}". This is currently treated as an empty string `""`, '
                "but will be treated as `null` in a future version of pulumi.\n"
                'Set the value to `""` to avoid this warning.'
            )
    for key, declared in project.schema.items():
        if key not in values and declared.default is not None:
            values[key] = _text(declared.default)
            if isinstance(declared.default, dict | list):
                objects.add(key)
    return Config(values, frozenset(secret_keys), frozenset(objects), tuple(warnings))


def validate(project: Project, stack_file: StackFile, config: Config) -> None:
    """Raise ProjectError, with the CLI's message, for a missing value, a plain-text secret or a wrong type."""
    own = f"{project.name}:"
    missing = [d for key, d in project.schema.items() if key not in config.values and key.startswith(own)]
    if missing:
        names = sorted(f"'{declared.name}'" for declared in missing)
        named = f"values {', '.join(names[:-1])} and {names[-1]}" if names[1:] else f"value {names[0]}"
        unset = f"{stack_file.path} does not set {'them' if names[1:] else 'it'}"
        raise _invalid(stack_file, f"is missing configuration {named}", unset)
    for key, declared in sorted(project.schema.items(), key=lambda item: item[1].name):
        if declared.type is None or key not in config.values:
            continue
        secret, text = key in config.secret_keys, config.values[key]
        named = f"with configuration key '{declared.name}'"
        if declared.secret and not secret:
            place = stack_file.path if key in stack_file.config else project.directory / "Pulumi.yaml"
            remedy = f"{place}: {in_plain_text(project, stack_file, key)}"
            raise _invalid(stack_file, f"{named} must be encrypted as it's secret", remedy)
        if secret and PLACEHOLDER in text:
            continue
        if not declared.type.fits(json.loads(text) if key in config.objects else text):
            shown = "[secret]" if secret else text if key in config.objects else json.dumps(text)
            raise _invalid(stack_file, f"{named} must be of type '{declared.type}'", f"{stack_file.path} has {shown}")


def in_plain_text(project: Project, stack_file: StackFile, key: str) -> str:
    """The message for an unencrypted secret, with the shell command that encrypts it."""
    name = key.removeprefix(f"{project.name}:")
    words = ["python", "-m", "local.engine", "config", "set", "--secret", name, "--stack", stack_file.stack]
    if project.directory != Path.cwd():
        words += ["--cwd", str(project.directory)]
    if stack_file.path != project.stack_config_dir / f"Pulumi.{stack_file.stack}.yaml":
        words += ["--config-file", str(stack_file.path)]
    return f"{key} is in plain text; encrypt it with `{shlex.join(words)}`"


def _invalid(stack_file: StackFile, wrong: str, cause: str) -> ProjectError:
    return ProjectError(f"validating stack config: Stack '{stack_file.stack}' {wrong}\n  {cause}")


def _decrypt(raw: Any, crypter: Crypter | None) -> tuple[Any, bool]:
    """The value, and whether it contains a secret."""
    if isinstance(raw, dict):
        if set(raw) == {"secure"} and isinstance(raw["secure"], str):
            return (crypter.decrypt(raw["secure"]) if crypter else PLACEHOLDER), True
        pairs = {str(k): _decrypt(v, crypter) for k, v in raw.items()}
        return {k: v for k, (v, _) in pairs.items()}, any(s for _, s in pairs.values())
    if isinstance(raw, list):
        items = [_decrypt(v, crypter) for v in raw]
        return [v for v, _ in items], any(s for _, s in items)
    return raw, False


def _text(value: Any) -> str:
    """The form in which the CLI passes a value to a program: a list or map as JSON, anything else as Go prints it."""
    match value:
        case None:
            return ""
        case str():
            return value
        case float() if value.is_integer():
            return str(int(value))
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return f"{moment:%Y-%m-%d %H:%M:%S} +0000 UTC"
        case date():
            return f"{value} 00:00:00 +0000 UTC"
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=date.isoformat)
