"""Runs `__main__.py` with a stack's file as if everything was made, and reads what it registered."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from components.stack_config import NAMESPACE

ROOT = Path(__file__).parents[2]

RunStack = Callable[..., Any]

_RUNS: dict[str, Any] = {}


def config(stack: str, **more: Any) -> dict[str, Any]:
    """A stack's file; `more` are keys of its cloud's section, or of the stack if it has them."""
    file = yaml.safe_load((ROOT / f"stacks/Pulumi.{stack}.yaml").read_text())
    own = {key.removeprefix(f"{NAMESPACE}:"): value for key, value in file["config"].items()}
    whole = {
        "executors": {},
        "sourceRanges": [],
        "monitoring": "off",
        "workloads": False,
        "protect": False,
        "retain": False,
        "doctorSchedule": "",
        **own,
    }
    section = {key: value for key, value in more.items() if key not in whole}
    cloud = own["cloud"]
    return {**whole, **{key: more[key] for key in more if key in whole}, cloud: {**own[cloud], **section}}


def runner(run_program: Any, made: Mapping[str, Any]) -> RunStack:
    """`run(stack, **more)`, see `config`; each config runs once. `made`: what the clouds answer, by type."""

    def run(stack: str, **more: Any) -> Any:
        key = json.dumps([stack, more], sort_keys=True)
        if key not in _RUNS:
            _RUNS[key] = run_program(program, config(stack, **more), made)
        return _RUNS[key]

    return run


def program() -> None:
    """The stack's program."""
    runpy.run_path(str(ROOT / "__main__.py"))


def every(recording: Any, type_: str) -> dict[str, Any]:
    """The inputs of all resources of this type, by name."""
    return {r.request.name: r.inputs for r in recording.registrations if r.request.type == type_}


def opened(value: Any) -> Any:
    """The value in a secret's envelope, or the value."""
    return value["value"] if isinstance(value, Mapping) and "value" in value else value


def unguarded(recording: Any) -> set[str]:
    """What the engine may delete although the destroy guard refuses its own deletion."""
    guard = recording.one("pulumi-python:dynamic/cloudcontroller:DestroyGuard", "destroy-guard").urn
    made = {r.urn for r in recording.registrations if r.request.custom and not r.request.type.startswith("pulumi:")}
    guarded: set[str] = recording.dependencies(guard)
    return made - guarded - {guard}


def visible(recording: Any, is_secret: Callable[[Any], bool]) -> str:
    """All that is not secret in the inputs, except those of `tls`, and in the outputs."""

    def text(value: Any) -> str:
        if is_secret(value):
            return ""
        if isinstance(value, dict):
            return "".join(map(text, value.values()))
        return "".join(map(text, value)) if isinstance(value, list) else str(value)

    of_others = [r for r in recording.registrations if not r.request.type.startswith("tls:")]
    return "".join(text(r.inputs) for r in of_others) + text(recording.outputs)
