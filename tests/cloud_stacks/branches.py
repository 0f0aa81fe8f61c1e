"""A repository with this project's program, and branches of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Repository:
    """A copy of what git would commit here, as the branch `main` of a repository of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        tracked = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in filter(None, tracked.split("\0")):
            source, target = ROOT / name, folder / name
            # The program and what it imports; tests would only take time.
            if source.is_file() and not name.startswith(("tests/", "docs/", "benchmarks/")):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit("base")

    def git(self, *arguments: str) -> str:
        """Run git; what it prints."""
        who = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *arguments], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, message: str) -> None:
        """Commit everything."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def branch(self, name: str, edits: dict[str, tuple[str, str]]) -> None:
        """A branch from `main` with one commit. `edits`: by file, a text that is there once, and its replacement."""
        self.git("checkout", "--quiet", "-b", name, "main")
        for file, (before, after) in edits.items():
            path = self.folder / file
            text = path.read_text()
            assert text.count(before) == 1, f"{file} has {before!r} {text.count(before)} times"
            path.write_text(text.replace(before, after))
        self.commit(name)
