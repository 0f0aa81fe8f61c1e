"""The symbol, tone and terms of each operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from local.engine.display.text import Tone
from local.engine.events import StepInfo, StepStarted
from local.engine.steps.planner import Op
from local.plugins.urn import is_provider


@dataclass(frozen=True, slots=True)
class Word:
    """An operation's symbol and terms: `would` in a preview, `doing` while it runs, `did` afterwards."""

    symbol: str
    would: str
    doing: str
    did: str
    tone: Tone = Tone.PLAIN


_WORDS: Final = {
    "same": Word("", "", "", ""),
    "create": Word("+", "create", "creating", "created", Tone.CREATE),
    "update": Word("~", "update", "updating", "updated", Tone.UPDATE),
    "delete": Word("-", "delete", "deleting", "deleted", Tone.DELETE),
    "replace": Word("+-", "replace", "replacing", "replaced", Tone.REPLACE),
    "create-replacement": Word("++", "create replacement", "creating replacement", "created replacement", Tone.CREATE),
    "delete-replaced": Word("--", "delete original", "deleting original", "deleted original", Tone.DELETE),
    "import": Word("=", "import", "importing", "imported", Tone.CREATE),
    "import-replacement": Word(
        "=>", "import replacement", "importing replacement", "imported replacement", Tone.CREATE
    ),
    "read": Word(">", "read", "reading", "read", Tone.READ),
    "read-replacement": Word(">>", "read replacement", "reading replacement", "read replacement", Tone.READ),
    "refresh": Word("~", "refresh", "refreshing", "refreshed", Tone.UPDATE),
    "discard": Word("<", "discard", "discarding", "discarded", Tone.DELETE),
    "discard-replaced": Word("<<", "discard original", "discarding", "discarded", Tone.DELETE),
}
"""By Pulumi's name of the operation."""

COUNTED: Final = ("create", "import", "update", "delete", "replace")
"""The operations that a summary counts, in order; the parts of a replacement count as the replacement."""

UNCHANGING: Final = frozenset({"same", "read", "read-replacement", "discard", "discard-replaced"})
"""Operations that change only the state."""

PREVIEWED_DESTROY: Final = "preview-destroy"
"""The preview of a destroy, before the question."""
TITLES: Final = {
    "preview": "Previewing update",
    "up": "Updating",
    "refresh": "Refreshing",
    "destroy": "Destroying",
    PREVIEWED_DESTROY: "Previewing destroy",
}


def word_of(op: str) -> Word:
    """The terms of an operation."""
    return _WORDS.get(op) or Word("", op, op, op)


def title_of(operation: str) -> str:
    """The title of a run in progress."""
    return TITLES.get(operation, operation.capitalize())


def outcome(step: StepInfo, seconds: float, *, planning: bool, refreshing: bool) -> str:
    """The term for a completed step."""
    word = word_of(step.op)
    if step.op is Op.SAME:
        return ""
    if refreshing and step.op in (Op.UPDATE, Op.DELETE):
        return "gone: removed from the state" if step.op is Op.DELETE else "changed"
    return word.would if planning else f"{word.did} ({seconds:.2f}s)"


def note_of(step: StepInfo, *, refreshing: bool) -> str:
    """A note about the step besides its outcome."""
    words = [step.note] if step.note and not refreshing else []
    words += ["simulated"] if step.simulated else []
    return f"[{', '.join(words)}]" if words else ""


def takes_time(event: StepStarted) -> bool:
    """Whether the step takes time: components and provider instances have no object."""
    step = event.step
    if event.planning or step.hidden or step.op is Op.REFRESH or step.op in UNCHANGING:
        return False
    only_forgotten = step.op in (Op.DELETE, Op.DELETE_REPLACED) and bool(step.note)
    return step.resource.custom and not is_provider(step.type) and not only_forgotten
