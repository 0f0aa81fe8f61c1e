"""What the wheels and the repository of `cloud-stacks new` import is declared: read from the sources."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "cloud_stacks" / "template"
PROJECTS = {
    "cloud-controller": ROOT / "pyproject.toml",
    "cloud-controller-stacks": ROOT / "cloud_stacks" / "pyproject.toml",
    "pulumi-cloud-controller": ROOT / "components" / "pyproject.toml",
}
OURS = {
    "cloud_controller": "cloud-controller",
    "cloud_stacks": "cloud-controller-stacks",
    "local": "cloud-controller-stacks",
    "policy": "cloud-controller-stacks",
    "pulumi_cloud_controller": "pulumi-cloud-controller",
}
"""Where our packages are, by their names in sources."""
PARTS = {"botocore": "boto3", "grpcio": "pulumi", "pydantic-core": "pydantic"}
"""Packages that belong to the interface of another, which names their versions."""
HERE = packages_distributions()


def files(*patterns: str) -> list[Path]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    return [ROOT / each for each in found if each.endswith(".py")]


def in_wheel_of_stacks() -> list[Path]:
    """The files that tools/wheels puts into it."""
    script = (ROOT / "tools" / "wheels").read_text().replace("\\\n", " ")
    [listed] = re.findall(r"git ls-files .* -- (LICENSE cloud_stacks .*?) \|", script)
    return [each for each in files(*listed.split()) if TEMPLATE not in each.parents]


CASES: dict[str, tuple[list[str], Callable[[], list[Path]]]] = {
    "cloud-controller": (["cloud-controller[aws]"], lambda: files("cloud_controller")),
    "cloud-controller-stacks": (["cloud-controller-stacks[pytest]"], in_wheel_of_stacks),
    "pulumi-cloud-controller": (["pulumi-cloud-controller[alicloud,aws,openstack]"], lambda: files("components")),
    "the template": (
        [line for line in (TEMPLATE / "requirements.txt").read_text().splitlines() if re.match(r"\w", line)],
        lambda: files("cloud_stacks/template"),
    ),
}


@pytest.mark.integration
@pytest.mark.parametrize("case", CASES)
def test_everything_that_is_imported_is_declared(case: str) -> None:
    requirements, sources = CASES[case]
    allowed = {case, *declared(requirements)}

    undeclared = {
        f"{file.relative_to(ROOT)} imports {module}"
        for file in sources()
        for module in imports(file)
        if not {PARTS.get(name, name) for name in distributions(module)} & allowed
    }

    assert undeclared == set()


def declared(requirements: list[str]) -> Iterator[str]:
    """The names of these requirements, and of what those of ours declare. Their versions are ours."""
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        yield name
        if name in PROJECTS:
            project = tomllib.loads(PROJECTS[name].read_text())["project"]
            assert requirement.specifier.contains(project["version"]), f"{requirement}: there is {project['version']}"
            extras = project.get("optional-dependencies", {})
            yield from declared([*project["dependencies"], *(t for each in requirement.extras for t in extras[each])])


def imports(file: Path) -> set[str]:
    """The first names of modules that are neither relative nor Python's own, also of imports in functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return names - sys.stdlib_module_names


def distributions(module: str) -> set[str]:
    return {OURS[module]} if module in OURS else {*map(canonicalize_name, HERE.get(module, [module]))}
