"""`python -m local.engine config ...`: lists, shows, sets and removes values in a stack file, as the CLI does."""

from __future__ import annotations

import argparse
import getpass
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from local.engine.cli_request import which_stack
from local.engine.stack.config import Config, resolve
from local.engine.stack.project import Project, StackFile, load_project, load_stack_file
from local.engine.stack.session import Request, stack_file_crypter
from local.engine.stack.stack_file_text import with_config, with_salt, without_config
from local.plugins import paths

OK, FAILED = 0, 1
_SECRET_NAME: Final = re.compile("token|secret|pass(word|wd|phrase)", re.IGNORECASE)


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add `config` and its actions. The options that select the stack may precede or follow the action."""
    before, after = which_stack(required=False), which_stack(required=False, keeps=True)
    command: argparse.ArgumentParser = commands.add_parser(
        "config", parents=[before], help="list or change the values in the stack file"
    )
    command.add_argument("--json", "-j", action="store_true")
    command.add_argument("--show-secrets", action="store_true", help="show secrets in plain text")
    actions = command.add_subparsers(dest="action", metavar="ACTION", title="actions (none: list the values)")
    setting = actions.add_parser(
        "set",
        parents=[after],
        help="set a value",
        discreet=True,
        description="Without VALUE it is read from standard input, to keep a secret out of the shell's history.",
    )
    getting = actions.add_parser("get", parents=[after], help="print a value; a secret in plain text")
    removing = actions.add_parser("rm", parents=[after], help="remove a value")
    for each in (setting, getting, removing):
        each.add_argument("key", metavar="KEY")
        each.add_argument("--path", action="store_true", help="KEY is a path into a map or list, such as a.b[0]")
    setting.add_argument("value", metavar="VALUE", nargs="?")
    kind = setting.add_mutually_exclusive_group()
    kind.add_argument("--secret", action="store_true", help="encrypt it")
    kind.add_argument("--plaintext", action="store_true", help="do not encrypt it, even if KEY looks like a secret")
    return command


def run(parsed: argparse.Namespace, request: Request, out: TextIO) -> int:
    """Run one action; returns the exit code. Raises ProjectError, SecretsError, ValueError."""
    project = load_project(request.project_dir)
    action = _ACTIONS.get(parsed.action, _list)
    return action(parsed, request, project, out)


def _list(parsed: argparse.Namespace, request: Request, project: Project, out: TextIO) -> int:
    stack_file = load_stack_file(project, request.stack, request.config_file)
    config = _resolved(request, project, stack_file, secrets=parsed.show_secrets)
    if parsed.json:
        shown = {key: _as_json(config, key, show=parsed.show_secrets) for key in sorted(config.values)}
        out.write(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")
        return OK
    values = dict(sorted(config.values.items())) if parsed.show_secrets else config.masked()
    rows = [("KEY", "VALUE"), *((key.removeprefix(f"{project.name}:"), value) for key, value in values.items())]
    width = max(len(key) for key, _ in rows)
    for key, value in rows:
        out.write(f"{key:<{width}}  {value}\n")
    return OK


def _as_json(config: Config, key: str, *, show: bool) -> dict[str, Any]:
    secret, value = key in config.secret_keys, config.values[key]
    if secret and not show:
        return {"secret": True}
    parts = {"objectValue": json.loads(value)} if key in config.objects else {}
    return {"value": value, **parts, "secret": secret}


def _get(parsed: argparse.Namespace, request: Request, project: Project, out: TextIO) -> int:
    stack_file = load_stack_file(project, request.stack, request.config_file)
    key, inner = _key(project, parsed)
    config = _resolved(request, project, stack_file, secrets=False)
    if key in config.secret_keys:
        config = _resolved(request, project, stack_file, secrets=True)
    if key in config.values and not inner:
        out.write(f"{config.values[key]}\n")
        return OK
    value: Any = json.loads(config.values[key]) if key in config.objects else None
    for step in inner:
        value = _child(value, step)
    if value is None:
        print(f"error: configuration key '{parsed.key}' not found for stack '{request.stack}'", file=sys.stderr)
        return FAILED
    out.write((value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))) + "\n")
    return OK


def _set(parsed: argparse.Namespace, request: Request, project: Project, out: TextIO) -> int:
    del out
    path, text, stack_file = _read(request, project)
    key, inner = _key(project, parsed)
    if not parsed.secret and not parsed.plaintext and _is_for_a_secret(project, key, inner):
        raise ValueError(
            f"{parsed.key} looks like a secret: encrypt it with --secret, or store it in plain text with --plaintext"
        )
    value: Any = _value(parsed)
    if parsed.secret:
        crypter = stack_file_crypter(request, stack_file, create=True)
        if not stack_file.salt:
            text = with_salt(text, crypter.salt)
        value = {"secure": crypter.encrypt(value)}
    elif inner:
        value = _typed(value)
    name, old = _present(stack_file, project, key)
    _write(path, with_config(text, name, _with(old, inner, value) if inner else value))
    return OK


def _remove(parsed: argparse.Namespace, request: Request, project: Project, out: TextIO) -> int:
    del out
    path, text, stack_file = _read(request, project)
    key, inner = _key(project, parsed)
    if key not in stack_file.config:
        return OK
    name, old = _present(stack_file, project, key)
    _write(path, with_config(text, name, _without(old, inner)) if inner else without_config(text, name))
    return OK


_ACTIONS: Mapping[str | None, Callable[[argparse.Namespace, Request, Project, TextIO], int]] = {
    "get": _get,
    "set": _set,
    "rm": _remove,
}


def _resolved(request: Request, project: Project, stack_file: StackFile, *, secrets: bool) -> Config:
    """The values with the declared defaults; only `secrets` need a passphrase."""
    config = resolve(project, stack_file, None)
    if secrets and config.secret_keys:
        return resolve(project, stack_file, stack_file_crypter(request, stack_file))
    return config


def _read(request: Request, project: Project) -> tuple[Path, str, StackFile]:
    """The stack file's path, text and content; the first value creates the file."""
    path = request.config_file or project.stack_config_dir / f"Pulumi.{request.stack}.yaml"
    if not path.exists():
        return path, "", StackFile(request.stack, path, {})
    stack_file = load_stack_file(project, request.stack, path)
    return path, path.read_text(), stack_file


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    if path.exists():
        shutil.copymode(path, new)
    new.replace(path)


def _key(project: Project, parsed: argparse.Namespace) -> tuple[str, paths.Path]:
    """The full name of the key, and the path in its value."""
    namespace, colon, name = parsed.key.rpartition(":")
    if not name or (colon and not namespace):
        raise ValueError(f"invalid configuration key: {parsed.key!r}; allowed: KEY, NAMESPACE:KEY")
    try:
        first, *inner = paths.parse(name) if parsed.path else (name,)
    except paths.PathError as error:
        raise ValueError(str(error)) from error
    return f"{namespace or project.name}:{first}", tuple(inner)


def _present(stack_file: StackFile, project: Project, key: str) -> tuple[str, Any]:
    """The key as the stack file spells it, with its project's namespace or without, and its value; None if absent."""
    short = key.removeprefix(f"{project.name}:")
    return (short if short in stack_file.written else key), stack_file.config.get(key)


def _is_for_a_secret(project: Project, key: str, inner: paths.Path) -> bool:
    """Whether Pulumi.yaml declares the key as a secret, or any part of its path looks like one."""
    declared = project.schema.get(key)
    names = (key.rpartition(":")[2], *inner)
    return (declared is not None and declared.secret) or any(_SECRET_NAME.search(str(name)) for name in names)


def _value(parsed: argparse.Namespace) -> str:
    if parsed.value is not None:
        return str(parsed.value)
    if sys.stdin is None:  # closed
        raise ValueError("no value given")
    if not sys.stdin.isatty():
        return sys.stdin.read().removesuffix("\n")
    try:
        return getpass.getpass("value: ") if parsed.secret else input("value: ")
    except (EOFError, KeyboardInterrupt) as error:
        print(file=sys.stderr)  # so that a message does not follow the prompt on its line
        raise ValueError("no value given") if isinstance(error, EOFError) else error from None


def _typed(text: str) -> str | int | bool:
    """In a map or list the CLI keeps numbers and booleans as such, but not what begins with a zero."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?([1-9][0-9]*|0)", text) else text


def _child(value: Any, step: paths.Step) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def _with(value: Any, path: paths.Path, new: Any) -> Any:
    """The value with `new` at the path; missing parents are created. Raises ValueError where that is impossible."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = [] if value is None else value
        if not isinstance(items, list):
            raise ValueError(f"[{step}]: the value that contains it is not a list")
        if step > len(items):
            raise ValueError(f"[{step}]: the list has only {len(items)} items")
        return [*items[:step], _with(_child(items, step), rest, new), *items[step + 1 :]]
    fields = {} if value is None else value
    if not isinstance(fields, dict) or set(fields) == {"secure"}:
        raise ValueError(f"{step}: the value that contains it is not a map")
    return {**fields, step: _with(fields.get(step), rest, new)}


def _without(value: Any, path: paths.Path) -> Any:
    step, rest = path[0], path[1:]
    if _child(value, step) is None:
        return value
    if rest:
        return _with(value, (step,), _without(_child(value, step), rest))
    return (
        [*value[:step], *value[step + 1 :]] if isinstance(step, int) else {k: v for k, v in value.items() if k != step}
    )
