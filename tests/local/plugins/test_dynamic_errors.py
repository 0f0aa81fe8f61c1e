"""Python tracebacks as messages for people."""

import traceback

from local.plugins.dynamic_errors import last_line, message_of


class TypedError(Exception):
    """An error in a module."""


def raised(error: Exception, cause: Exception | None = None) -> str:
    try:
        if cause is None:
            raise error
        try:
            raise cause
        except Exception as inner:
            raise error from inner
    except Exception:  # noqa: BLE001 - the test is about what is made of any
        return traceback.format_exc()


def test_a_traceback_is_reduced_to_the_errors_type_and_message() -> None:
    assert last_line(raised(TypedError("no such zone: zone-x"))) == "TypedError: no such zone: zone-x"


def test_the_last_error_of_a_chain_counts() -> None:
    assert last_line(raised(ValueError("outer"), KeyError("inner"))) == "ValueError: outer"


def test_a_message_of_several_lines_is_kept() -> None:
    assert last_line(raised(ValueError("first\nsecond"))) == "ValueError: first\nsecond"


def test_an_error_without_message_and_a_text_without_traceback_stay() -> None:
    assert last_line(raised(TypedError())) == "TypedError"
    assert last_line("socket closed") == "socket closed"


def test_a_long_message_is_cut() -> None:
    assert message_of(raised(ValueError("x" * 1_000_000))).startswith("ValueError: xxx")
    assert len(message_of(raised(ValueError("x" * 1_000_000)))) < 11_000


def test_a_missing_module_is_explained_only_where_the_class_itself_is_missing() -> None:
    missing = ModuleNotFoundError("No module named 'boxes'")
    assert "no longer has the provider's class" not in message_of(raised(missing))
    assert "no longer has the provider's class" in message_of(raised(missing).replace("in raised", "in deserialize"))
