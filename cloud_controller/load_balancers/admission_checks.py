"""The checks of one Service in CEL, made from the catalogue by which the controller parses and builds. Pure.

Variables of an admission policy list what is wrong, in the controller's words (`service_admission.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cloud_controller.load_balancers import near_misses, readiness_gates, restrictions
from cloud_controller.load_balancers.annotation import OLDER_NAME, SHOWN, Annotation
from cloud_controller.load_balancers.catalogue import Catalogue
from cloud_controller.load_balancers.terms import literal
from cloud_controller.patterns import any_case

ANNOTATIONS = "(has(object.metadata.annotations) ? object.metadata.annotations : {})"
_DIGITS = 18
"""Of an integer in CEL; no bound in a catalogue has more."""
_LONGEST = 1200
"""Characters of a message. An API server shows none that has more than 5,120 bytes."""


def sentences(catalogue: Catalogue) -> dict[str, str]:
    """The variables that list what is wrong, each with the expression of its sentence."""
    unknown = f": unknown on {catalogue.cloud}"
    restricts = f": {restrictions.OPEN} (allowed: {restrictions.INSTEAD_OF_OPEN})"
    public = f": {restrictions.PUBLIC} (allowed: {restrictions.INSTEAD_OF_PUBLIC})"
    names = "variables.contradicting[0]"
    texts = f"{names}.map(n, {_SHOWN})"
    return {
        "unknown": f"'annotation ' + variables.unknown[0] + {literal(unknown)}",
        "restricting": f"'annotation ' + variables.restricting[0] + {literal(restricts)}",
        "private": f"'annotation ' + variables.private[0] + {literal(public)}",
        "faults": _cut("variables.faults.join('; ')"),
        "contradicting": f"'annotation ' + {names}[0] + ': ' + {texts}[0] + ' contradicts ' + {texts}[1] + ' of '"
        f" + {names}[1] + {literal(OLDER_NAME)} + ' (allowed: one of the two; remove ' + {names}[1] + ')'",
        "conflicts": _cut("variables.conflicts[0].replace('\\n', ' ')"),
    }


def _cut(message: str) -> str:
    return f"[{message}].map(m, m.size() > {_LONGEST} ? m.substring(0, {_LONGEST}) + '\u2026' : m)[0]"


def variables(catalogue: Catalogue) -> dict[str, str]:
    """Names that the catalogue does not have, of the cloud and of others, and what is wrong with those that it has."""
    of_cloud = " || ".join(f"n.startsWith({literal(prefix)})" for prefix in catalogue.prefixes)
    rows = (*(row for entry in catalogue for row in _rows(entry)), _GATE)
    families = [_family(entry) for entry in catalogue if entry.suffix]
    known = f"n in {_list(catalogue.by_name)}" + "".join(f" || n.matches({literal(each)})" for each in families)
    near = f"n.matches({literal(_whole(near_misses.pattern(catalogue.by_name, catalogue.prefixes)))})"
    words = "n.lowerAscii().findAll('[a-z0-9]+').join('')"
    value = "variables.given[n].trim().lowerAscii()"
    by_value = f"{words}.contains('loadbalancer') && {value} in {_list(restrictions.INTERNAL_VALUES)}"
    found = {
        "given": ANNOTATIONS,
        "unknown": f"variables.given.filter(n, ({of_cloud} || {near}) && !({known}) && {_is_set(catalogue)})",
        "others": f"variables.given.filter(n, !({of_cloud}) && !({known})"
        f" && !({value} in {_list(restrictions.SWITCHED_OFF)}))",
        "internal": _is_internal(catalogue),
        "restricting": f"variables.others.filter(n, {words}.matches({literal(restrictions.CLIENTS.pattern)}))",
        "private": f"variables.others.filter(n, !variables.internal"
        f" && ({words}.matches({literal(restrictions.INTERNAL.pattern)}) || ({by_value})))",
        "rules": f"[{', '.join(map(_map, rows))}]",
        "faults": f"variables.rules.filter(r, {_wrong(catalogue)}.size() > 0)"
        f".map(r, {_wrong(catalogue)}.map(n, 'annotation ' + (has(r.names) ? r.names.split(' ')[0] : n)"
        f" + ': ' + [variables.given[n].trim()].map(v, {_TOO_MANY} ? {_COUNTED} : {_SHOWN} + r.why)[0])[0])",
    }
    found["contradicting"] = (
        # One name alone, as most have, contradicts nothing.
        "variables.rules.filter(r, has(r.names) && r.names.contains(' ')).map(r, r.names.split(' '))"
        f".map(names, names.filter(n, {_is_set(catalogue)}))"
        ".filter(names, names.exists(n, variables.given[n].trim() != variables.given[names[0]].trim()))"
    )
    # Once for all rules: they look each port up.
    found["port_keys"] = "object.spec.ports.map(p, p.protocol + ':' + string(p.port))"
    rules = [rule.cel(catalogue.by_argument) for rule in catalogue.refusals]
    shared = {name: term.cel for name, term in catalogue.shared.items()}
    texts = (*shared.values(), *rules)
    for entry in catalogue:
        if not entry.ignored and any(re.search(rf"\b(has|value)_{entry.argument}\b", text) for text in texts):
            found |= _settings(entry, catalogue)
    found |= shared
    # Like the controller, which looks at several settings only if each is valid, and says the first that is wrong.
    # A variable for each rule: the time in which the API server checks an expression grows with the square of its size.
    conflicts = "[]"
    for index, rule in reversed([*enumerate(rules)]):
        found[f"conflicts_{index}"] = rule
        conflicts = f"variables.conflicts_{index}.size() > 0 ? variables.conflicts_{index} : {conflicts}"
    found["conflicts"] = f"variables.faults.size() > 0 ? [] : ({conflicts})"
    return found


def _is_set(catalogue: Catalogue) -> str:
    """Whether the Service has annotation `n`."""
    return "n in variables.given" + (" && variables.given[n].trim() != ''" if catalogue.empty_is_unset else "")


def _settings(entry: Annotation, catalogue: Catalogue) -> dict[str, str]:
    """Whether a Service sets the annotation, and its value or default, as terms name them (`terms.py`)."""
    names = _list((entry.name, *entry.aliases))
    set_at_all = "n in variables.given" if "" in entry.harmless else _is_set(catalogue)
    has, value = f"has_{entry.argument}", f"variables.given[{names}.filter(n, {set_at_all})[0]].trim()"
    default = entry.default
    if entry.type is bool:
        value = f"{value} in {_list(('true', *entry.true_words))}"
    elif entry.type is int:
        value, default = f"int({value})", default or 0
    elif entry.type is tuple:
        value, default = f"{value}.split(',').map(w, w.trim()).filter(w, w != '')", ()
    elif entry.any_case:
        value = f"{_list(entry.allowed)}.filter(w, w.lowerAscii() == {value}.lowerAscii())[0]"
    otherwise = literal(default if default is not None else entry.type())
    return {
        has: f"{names}.exists(n, {set_at_all})",
        f"value_{entry.argument}": f"variables.{has} ? {value} : {otherwise}",
    }


_SHOWN = (
    f"\"'\" + [variables.given[n].replace('\\n', ' ')].map(t, t.size() <= {SHOWN} ? t : t.substring(0, {SHOWN})"
    " + '…')[0] + \"'\""
)
"""The value as errors quote it. A message with a line break would be dropped."""


_INVALID, _WORDS_TOO_MANY = " is not a valid value", " words are too many"
_TOO_MANY = "(has(r.most) && v.split(',').size() > int(r.most))"
_COUNTED = f"string(v.split(',').size()) + r.why.replace('{_INVALID}', '{_WORDS_TOO_MANY}')"


def _is_internal(catalogue: Catalogue) -> str:
    """Whether an annotation of the cloud makes the load balancer internal."""
    found = []
    for entry in catalogue:
        if entry.sets in restrictions.SCHEMES and not entry.ignored:
            words = ("true", *entry.true_words) if entry.type is bool else restrictions.INTERNAL_VALUES
            value = "variables.given[n].trim()" + (".lowerAscii()" if entry.any_case else "")
            names = _list((entry.name, *entry.aliases))
            found.append(f"{names}.exists(n, n in variables.given && {value} in {_list(words)})")
    return " || ".join(found) or "false"


def _wrong(catalogue: Catalogue) -> str:
    """The names of the annotations that the rule `r` refuses."""
    present = (
        "(has(r.family) ? variables.given.filter(n, n.matches(r.family))"
        " : r.names.split(' ').filter(n, n in variables.given))"
    )
    refused = (
        "has(r.refused) ? v == r.refused : has(r.forbidden) ? v.matches(r.forbidden) : !v.matches(r.valid)"
        f" || {_TOO_MANY}"
        " || (has(r.low) && int(v) < int(r.low)) || (has(r.high) && int(v) > int(r.high))"
    )
    if catalogue.empty_is_unset:
        refused = f"v != '' && ({refused})"
    return f"{present}.filter(n, [variables.given[n].trim()].exists(v, {refused}))"


def _rows(entry: Annotation) -> Iterator[dict[str, str]]:
    """A rule for each refused value with its reason, and one for what else is no value.

    `names` (or the pattern `family` of the names): whom it concerns; `valid`: the pattern of its values; `low`, `high`:
    their bounds; `most`: of words; `refused`: a value; `forbidden`: a pattern of such; `why`: what is wrong, after the
    quoted value.
    """
    who = {"family": _family(entry)} if entry.suffix else {"names": " ".join((entry.name, *entry.aliases))}
    if entry.ignored and entry.restricts:
        allowed = ", ".join(entry.harmless) or "none"
        yield {**who, "valid": _any_of(entry.harmless), "why": f": {entry.ignored} (allowed: {allowed})"}
        return
    for value, why in entry.refused.items():
        yield {**who, "refused": value, "why": f": {why} (allowed: {entry.allowed_text or 'none'})"}
    if entry.ignored:
        return
    given = (("low", entry.minimum), ("high", entry.maximum)) if entry.type is int else ()
    bounds = {key: str(bound) for key, bound in given if bound is not None}
    if entry.type is tuple:
        bounds["most"] = str(entry.most)
    # What a rule of its own refuses is not refused twice.
    valid = f"{_valid(entry)}|{_any_of(entry.refused)}" if entry.refused else _valid(entry)
    why = f"{_INVALID} (allowed: {entry.allowed_text})"
    yield {**who, "valid": valid, **bounds, "why": why}
    if entry.not_pattern:
        yield {**who, "forbidden": _whole(entry.not_pattern), "why": why}


def _valid(entry: Annotation) -> str:
    """The pattern of this entry's values: what `Annotation.parse` accepts."""
    if entry.type is bool:
        return _any_of(("true", "false", *entry.true_words, *entry.false_words))
    if entry.type is int:
        return f"^-?[0-9]{{1,{_DIGITS}}}$"
    if entry.type is tuple:
        return r"(?s)^$|[^,\s]"
    if entry.allowed:
        return _whole("|".join(map(any_case, entry.allowed))) if entry.any_case else _any_of(entry.allowed)
    return _whole(entry.pattern or ".+")


def _any_of(words: Iterable[str]) -> str:
    return _whole("|".join(re.escape(word) for word in words))


def _family(entry: Annotation) -> str:
    """The pattern of the names of a family's members."""
    return _whole(re.escape(entry.name.removesuffix(entry.suffix or "")) + f"(?:{entry.suffix_pattern})")


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


_GATE = {
    "names": readiness_gates.ANNOTATION,
    "valid": _any_of(readiness_gates.WORDS),
    "why": f" is not a valid value (allowed: {', '.join(readiness_gates.WORDS)})",
}
"""The rule for the one annotation that every cloud has outside its catalogue."""


def _map(row: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{literal(key)}: {literal(value)}" for key, value in row.items()) + "}"


def _list(texts: Iterable[str]) -> str:
    return literal((*texts,))
