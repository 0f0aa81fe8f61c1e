"""What a command line runs, behind shells, init programs and interpreters. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "busybox", "ksh", "zsh"})
_PYTHON = re.compile(r"python[0-9.]*")
_INITS = frozenset({"tini", "dumb-init", "catatonit", "docker-init", "go-runner", "kube-log-runner"})
"""They end their own options with `--`, where these may have values."""
_WRAPPERS = {"exec": 0, "env": 0, "nohup": 0, "nice": 0, "stdbuf": 0, "timeout": 1, "gosu": 1, "su-exec": 1}
"""Programs and shell words that run another, and how many arguments they take before it."""
_KEYWORDS = frozenset({"!", "{", "(", "do", "else", "elif", "if", "then", "time", "until", "while"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.S)
_OPERATORS = re.compile(r"[;&|()]+")
_REDIRECTION = re.compile(r"&?>+[|&]?")
_SUCCEEDS = frozenset({"true", ":", "echo", "printf", "sleep", "date"})
_MACHINE = re.compile(r"[-_](linux[-_])?(amd64|arm64|arm|s390x|ppc64le|x86_64|aarch64)$")
_ENDING = re.compile(r"\.(py|sh|bin|exe)$")


@dataclass(frozen=True, slots=True)
class Command:
    """One program of a command line."""

    words: tuple[str, ...]
    """The program and its arguments."""
    operator: str = ""
    """What is between it and the command before: `;`, `&&`, `||`, `|`, `&`."""
    files: tuple[str, ...] = ()
    """Where a shell redirects its output; file descriptors are left out."""

    @property
    def names(self) -> tuple[str, ...]:
        """The program's name, without folder, machine and ending; of a Python module, each of its parts."""
        # Python runs a folder by its `__main__.py`.
        plain = bare(self.words[0].removesuffix("/__main__.py"))
        return tuple(part.replace("_", "-") for part in ([plain] if "/" in self.words[0] else plain.split(".")))


def bare(program: str) -> str:
    """`ccm` of `/bin/ccm-amd64` and of `ccm.py`."""
    return _MACHINE.sub("", _ENDING.sub("", program.rpartition("/")[2]))


def commands(words: Sequence[str], operator: str = "", files: tuple[str, ...] = ()) -> list[Command]:
    """The programs that a command line runs; several where it is a shell's script."""
    rest = list(words)
    while rest:
        name = rest[0].rpartition("/")[2]
        if name in _SHELLS:
            return _of_shell(rest[1:], operator, files)
        if _PYTHON.fullmatch(name):
            rest = _of_python(rest[1:])
            return [Command(tuple(rest), operator, files)] if rest else []
        if name in _INITS:
            rest = rest[rest.index("--") + 1 :] if "--" in rest else _without_options(rest[1:])
        elif name in _WRAPPERS:
            rest = _without_options(rest[1:])[_WRAPPERS[name] :]
        elif rest[0] in _KEYWORDS or _ASSIGNMENT.fullmatch(rest[0]):
            rest = rest[1:]
        else:
            return [Command(tuple(rest), operator, files)]
    return []


def always_succeeds(words: Sequence[str]) -> bool:
    """Whether the command line's exit code is zero whatever happens, as far as that can be seen."""
    found = commands(words)
    if not found or any(_may_end_it(each) for each in found):
        return False
    trivial = [each.words[0].rpartition("/")[2] in _SUCCEEDS or each.words[0] == "exit" for each in found]
    return all(trivial) or (trivial[-1] and found[-1].operator in (";", "||"))


def _may_end_it(command: Command) -> bool:
    """`exit 1`, `exit` with the code of the command before, and `set -e`."""
    program, *arguments = command.words
    if program == "set":
        return any(re.fullmatch(r"-\w*e\w*", each) for each in arguments)
    return program == "exit" and arguments[:1] != ["0"]


def _of_shell(words: Sequence[str], operator: str, files: tuple[str, ...]) -> list[Command]:
    for index, word in enumerate(words):
        if re.fullmatch(r"-\w*c\w*", word):
            script = _script(words[index + 1]) if index + 1 < len(words) else iter(())
            found = [inner for each in script for inner in commands(each.words, each.operator, each.files)]
            # What surrounds the shell holds for what it runs.
            first = [replace(each, operator=operator) for each in found[:1]]
            return [replace(each, files=(*each.files, *files)) for each in (*first, *found[1:])]
        if not word.startswith("-"):
            return commands(words[index:], operator, files)
    return []


def _script(text: str) -> Iterator[Command]:
    """Its commands, each with what the shell makes of it. A text with an open quote is one command."""
    lines = text.replace("\\\n", " ").replace("\n", ";")
    tokens = shlex.shlex(lines, posix=True, punctuation_chars=";&|()<>")
    tokens.whitespace_split = True
    tokens.commenters = ""
    try:
        found = list(tokens)
    except ValueError:
        found = text.split()
    words: list[str] = []
    files: list[str] = []
    operator = ""
    waiting = iter(found)
    for token in waiting:
        if _REDIRECTION.fullmatch(token):
            if words and words[-1] in ("1", "2"):
                words.pop()
            target = next(waiting, "")
            files.extend([target] if not target.isdigit() and target != "-" else [])
        elif _OPERATORS.fullmatch(token):
            if words:
                yield Command(tuple(words), operator, tuple(files))
                operator = token
            words, files = [], []
        else:
            words.append(token)
    if words:
        yield Command(tuple(words), operator, tuple(files))


def _of_python(words: Sequence[str]) -> list[str]:
    """The module or the script with its arguments; nothing where the program is in the command line itself."""
    for index, word in enumerate(words):
        if word == "-m":
            return [*words[index + 1 :]]
        if word == "-c":
            return []
        if not word.startswith("-") and (index == 0 or words[index - 1] not in ("-X", "-W")):
            return [*words[index:]]
    return []


def _without_options(words: Sequence[str]) -> list[str]:
    """What follows the options and assignments at the start, as in `env -i A=b program`."""
    for index, word in enumerate(words):
        if not word.startswith("-") and not _ASSIGNMENT.fullmatch(word):
            return [*words[index:]]
    return []
