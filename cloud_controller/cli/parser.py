"""An argument parser whose errors are one line: the problem, the nearest name, and how to get help."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from typing import Any, NoReturn

_REQUIRED = "the following arguments are required: "
_QUOTING = "ignored explicit argument "


class Parser(argparse.ArgumentParser):
    """Accepts full option names only, and exits with 2 at the first error.

    `forwards`: unknown options belong to another parser and are passed on. `also`: that parser's options, for hints.
    `discreet`: the last argument may be a secret, so errors do not quote arguments.
    """

    def __init__(
        self, *, forwards: bool = False, also: Collection[str] = (), discreet: bool = False, **more: Any
    ) -> None:
        super().__init__(**more, allow_abbrev=False)
        self._forwards = forwards
        self._discreet = discreet
        self.also = also

    @property
    def options(self) -> list[str]:
        """All option names except hidden ones."""
        return [o for a in self._actions if a.help != argparse.SUPPRESS for o in a.option_strings]

    def error(self, message: str) -> NoReturn:
        """Print the message in one line and exit with 2."""
        if message.startswith(_REQUIRED):
            message = self._missing(message.removeprefix(_REQUIRED))
        what, quotes, _ = message.partition(_QUOTING)
        if quotes:
            message = f"{what}does not take a value"  # The value itself may be a secret.
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like `ArgumentParser.parse_known_args`, but rejects unknown arguments unless the parser forwards them."""
        args = sys.argv[1:] if args is None else args
        if not self._forwards:
            # Before parsing: a required option may be missing because its name is misspelt.
            self._refuse_unknown_options(
                _long_options(args) if self._subparsers is None else takewhile(lambda a: a.startswith("-"), args)
            )
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and not self._forwards:
            self.refuse(unknown)
        return found, unknown

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit with an error about the first of these arguments."""
        self._refuse_unknown_options(unknown)
        what = f"after {self._last()}" if self._discreet else repr(unknown[0])
        self.error(f"unexpected argument {what}")

    def _refuse_unknown_options(self, arguments: Iterable[str]) -> None:
        for argument in arguments:
            name = argument.partition("=")[0]  # The value may be a secret.
            if name.startswith("-") and name not in self._option_string_actions:
                hint = nearest(name, [*self.options, *self.also])
                if self._discreet:
                    self.error(f"unknown option{hint or f'; put -- before a {self._last()} that begins with -'}")
                self.error(f"unknown option {name}{hint}")

    def _last(self) -> str:
        return str(self._get_positional_actions()[-1].metavar)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        allowed = [str(each) for each in action.choices]
        # A positional argument has no option string; its metavar is its name.
        what = "" if action.option_strings else f"unknown {str(action.metavar or action.dest).lower()} "
        hint = nearest(str(value), allowed) or ";"
        message = f"{what}{value!r}{hint} allowed: {', '.join(allowed)}"
        if not what:
            raise argparse.ArgumentError(action, message)
        self.error(message)

    def _missing(self, names: str) -> str:
        choices = [str(each) for a in self._actions if a.metavar == names for each in a.choices or ()]
        return f"{names} is required" + (f"; allowed: {', '.join(choices)}" if choices else "")


def nearest(word: str, known: Sequence[str]) -> str:
    """A "did you mean" hint for the closest known word, or an empty string."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _long_options(arguments: Sequence[str]) -> list[str]:
    """The arguments that are long options. Like argparse, what contains a space counts as a value."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [a for a in arguments[:end] if a.startswith("--") and " " not in a]
