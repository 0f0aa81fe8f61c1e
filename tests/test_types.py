"""mypy skips most of Pulumi's packages of clouds, and a use of what it skips would be `Any`, unnoticed."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MYPY = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
READ = {module for each in MYPY["overrides"] if each.get("follow_imports") == "normal" for module in each["module"]}


def used(package: str, source: str) -> Iterator[str]:
    """What a module uses of a package that it imports as a whole; what it imports from one, mypy checks."""
    nodes = [*ast.walk(ast.parse(source))]
    imported = [alias for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    # `import pulumi_aws.ec2` binds the whole package.
    names = {
        alias.asname or package
        for alias in imported
        if alias.name == package or (alias.name.startswith(f"{package}.") and alias.asname is None)
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            yield node.attr


@pytest.mark.parametrize("package", ["pulumi_alicloud", "pulumi_aws"])
def test_mypy_reads_the_modules_that_are_used_of_a_package(package: str) -> None:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    modules = {each.stem for each in Path(spec.origin).parent.iterdir()}
    roots = [ROOT / each for each in MYPY["files"]]
    sources = [path.read_text() for root in roots for path in ([root] if root.is_file() else root.rglob("*.py"))]

    found = {name for source in sources if package in source for name in used(package, source)} & modules

    assert "vpc" in found
    assert {name for name in found if READ.isdisjoint({f"{package}.{name}", f"{package}.{name}.*"})} == set()
