"""The format of cloud configs: sections, keys and values as git writes them, and errors that show no secret."""

from __future__ import annotations

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.common.gcfg import Section, is_url, read, written

KNOWN = {"Global": ("Region", "Token", "Families", "Closed", "URL"), "Override": ("Service", "URL")}
SECRET = "a-secret-token"


def parsed(text: str) -> Section:
    """The section [Global] that begins with this text."""
    (section,) = read(f"[Global]\n{text}\n", KNOWN, named={"Override"}, repeated={"Families"})["Global"]
    return section


def test_sections_and_keys_are_read_in_any_case() -> None:
    (section,) = read("[GLOBAL]\nREGION = r\nuRl = u\n", KNOWN)["Global"]

    assert (section.text("Region"), section.text("URL")) == ("r", "u")


def test_comments_and_quotes_are_read_as_git_reads_them() -> None:
    section = parsed('; all\n\nURL = "a#b" ; why\nRegion = r # where\nToken = "a \\"b\\" \\\\ "')

    assert [section.text(key) for key in ("URL", "Region", "Token")] == ["a#b", "r", 'a "b" \\ ']


def test_a_section_may_appear_in_parts() -> None:
    section = parsed('Region = r\n[Override "1"]\nURL = u\n[Global]\nURL = v')

    assert (section.text("Region"), section.text("URL")) == ("r", "v")


def test_a_known_section_that_is_missing_is_empty() -> None:
    found = read("", KNOWN, named={"Override"})

    assert [section.text("Region") for section in found["Global"]] == [None]
    assert found["Override"] == []


def test_named_sections_are_kept_apart() -> None:
    text = '[Override "a"]\nURL = 1\n[Override "b"]\nURL = 2\n[Override "a"]\nService = s\n'

    found = read(text, KNOWN, named={"Override"})["Override"]

    assert [(each.text("Service"), each.text("URL")) for each in found] == [("s", "1"), (None, "2")]


def test_a_repeated_key_has_all_its_values_in_order() -> None:
    assert parsed("Families = b\nfamilies =\nFamilies = a").texts("Families") == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", False), ("Closed", True), ("Closed # yes", True), ("Closed = YES", True), ("Closed = 0", False)],
)
def test_a_flag_is_set_by_its_bare_key_or_by_its_value(text: str, expected: bool) -> None:
    assert parsed(text).flag("Closed") is expected


def test_an_empty_value_counts_as_missing() -> None:
    section = parsed('Region =\nToken = ""')

    assert (section.text("Region"), section.one_of("Token", ("a", "b"), "b")) == (None, "b")
    with pytest.raises(InvalidConfiguration, match=r"^cloud config: \[Global\] Region: missing$"):
        section.required("Region")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Regoin = x", r"line 2: unknown key in \[Global\]; did you mean 'Region'\? \(allowed: Region, Token"),
        ("Region = a\nregion = b", r"line 3: \[Global\] Region appears twice$"),
        (f'Token = "{SECRET}', "line 2: unclosed quote"),
        (f"Token = {SECRET}\\n", "line 2: a backslash may escape only"),
        (f"Token = {SECRET}#1", "line 2: '#' inside the value starts a comment"),
        (f"Token = {SECRET};1", "line 2: ';' inside the value starts a comment"),
        (f"= {SECRET}", "line 2: not of the form 'key = value'"),
        (f"Token {SECRET}", "line 2: not of the form 'key = value'"),
        (f"Token {SECRET}==", "line 2: not of the form 'key = value'"),
        (f'{{"token": "{SECRET}=="}}', "line 2: not of the form 'key = value'"),
        (SECRET, r"line 2: unknown key in \[Global\]"),
        ("[Globe]", "line 2: unknown section; did you mean 'Global'"),
        (f"[{SECRET}]", "line 2: unknown section"),
        (f"[Global] Token = {SECRET}", r'line 2: not a known section \(allowed: \[Global\], \[Override "NAME"\]\)'),
        (f'[Global "{SECRET}"]', "line 2: not a known section"),
        ("[Override]", "line 2: not a known section"),
        (f'[Override "{SECRET}"]\nURI = x', r"line 3: unknown key in \[Override\]; did you mean 'URL'"),
    ],
)
def test_an_error_names_the_line_and_shows_no_secret(text: str, message: str) -> None:
    with pytest.raises(InvalidConfiguration, match=f"^cloud config: {message}") as refused:
        parsed(text)

    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_line_before_the_first_section_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match=r"^cloud config: line 1: not in a \[section\]$"):
        read(f"Token = {SECRET}\n", KNOWN)


def test_an_error_in_a_named_section_names_its_first_line_and_not_its_name() -> None:
    (section,) = read(f'\n[Override "{SECRET}"]\n', KNOWN, named={"Override"})["Override"]

    with pytest.raises(InvalidConfiguration, match=r"^cloud config: \[Override\] \(line 2\) URL: missing$"):
        section.required("URL")


@pytest.mark.parametrize("refused", ["text", "texts", "required"])
def test_a_bare_key_has_no_value(refused: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"^cloud config: \[Global\] Token: has no value$"):
        getattr(parsed("Token"), refused)("Token")


def test_a_value_that_is_not_allowed_is_not_shown() -> None:
    section = parsed(f"Token = {SECRET}")

    with pytest.raises(InvalidConfiguration, match=r"Token: not a valid value \(allowed: a, b\)$"):
        section.one_of("Token", ("a", "b"), "a")
    with pytest.raises(InvalidConfiguration, match=r"Token: not a number \(allowed: digits\)$"):
        section.matching("Token", "[0-9]+", "not a number", "digits")
    with pytest.raises(InvalidConfiguration, match=r"Token: not a valid value \(allowed: true, false\)$"):
        section.flag("Token")
    assert SECRET not in repr(section)


texts = some.text(some.characters(exclude_categories=["C", "Z"], include_characters=' \t"\\#;='), min_size=1)


@given(texts)
def test_any_text_is_written_so_that_it_is_read_back(text: str) -> None:
    assert parsed(f"Token = {written(text)}").text("Token") == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://api.example.com", True),
        ("http://127.0.0.1:5000/v1", True),
        ("http://[::1]:80", True),
        ("api.example.com", False),
        ("ftp://api.example.com", False),
        ("http://", False),
        ("http://host:0", False),
        ("http://host:99999", False),
        ("http://me:secret@host", False),
        ("http://ho st", False),
    ],
)
def test_a_url_is_http_to_a_host_without_credentials(value: str, expected: bool) -> None:
    assert is_url(value) is expected
