"""The canonical form of a Kubernetes quantity: `0.5` is `500m`, `1024Mi` is `1Gi`. Pure."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal

_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?\d+)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"": 0, "Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_NANO = Decimal("1e-9")
# More digits than any quantity has, so that nothing is rounded on the way.
_EXACT = Context(prec=100)


def canonical_quantity(text: str) -> str:
    """The text as Kubernetes' API types write it; unchanged if it is not a quantity, or out of range."""
    match = _QUANTITY.fullmatch(text)
    try:
        return text if match is None else _canonical(text, match)
    except (ArithmeticError, ValueError):  # more digits than a number may have
        return text


def _canonical(text: str, match: re.Match[str]) -> str:
    number, suffix = Decimal(match["number"]), match["suffix"]
    if suffix in _BINARY and suffix:
        value = _rounded(_EXACT.multiply(number, Decimal(1024 ** _BINARY[suffix])))
        # Below 1Ki, and where a fraction would be lost, it is written in decimal.
        if abs(value) >= 1024 and value == value.to_integral_value():
            return _binary(int(value))
        return _decimal(value, exponents=False)
    exponents = suffix not in _DECIMAL
    power = int(suffix[1:]) if exponents else _DECIMAL[suffix]
    if _is_kept(match["number"], power):
        return text
    return _decimal(_rounded(_EXACT.scaleb(number, power)), exponents=exponents)


def _is_kept(number: str, power: int) -> bool:
    """Whether Go's parser already accepts the spelling as canonical, as it does `1.500`."""
    whole, _, fraction = number.lstrip("+-").partition(".")
    digits, scale = (whole.lstrip("0") or "0") + fraction, power - len(fraction)
    return len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def _rounded(value: Decimal) -> Decimal:
    return value.quantize(_NANO, ROUND_UP, _EXACT)


def _binary(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < len(_BINARY) - 1:
        value, power = value // 1024, power + 1
    return f"{value}{list(_BINARY)[power]}"


def _decimal(value: Decimal, *, exponents: bool) -> str:
    """As a whole number and the largest power of a thousand that leaves one."""
    if value == 0:
        return "0"
    number, power = int(_EXACT.scaleb(value, 9)), -9
    while number % 1000 == 0 and (exponents or power < _DECIMAL["E"]):
        number, power = number // 1000, power + 3
    if exponents:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{next(suffix for suffix, of in _DECIMAL.items() if of == power)}"
