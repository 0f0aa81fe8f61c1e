"""Finds credentials in clear in a text, whatever its format, and names them without their values. Pure.

A credential is a filled setting with a telling name (`password`, `SECRET_ACCESS_KEY`), or something that shows by
its form what it is (a private key, a URL with a password).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator

from policy.texts import settings

_NAMES = re.compile(
    r"(password|passwd|passphrase|requirepass|accesskey|accesskeyid|accesskeysecret|secretkey|secretaccesskey"
    r"|secretid|accountkey|applicationcredentialsecret|clientsecret|apikey|apisecret|privatekey|clientkeydata)$"
)
"""The ends of names, without case and separators: `access-key-secret`, `AccessKeySecret` and `ACCESS_KEY_SECRET`."""
_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_TOKENS = re.compile(r"(access|api|auth|bearer|id|refresh|session)?tokens?$")
# Other secrets are mostly the names of Kubernetes' own: `tls-secret: web-certificate`.
_WHOSE_SECRET = frozenset(
    {"access", "api", "app", "application", "auth", "consumer", "cookie", "hmac", "jwt", "oauth", "session", "shared"}
    | {"signing", "webhook"}
)
# `proxy_pass` leads somewhere.
_NOT_A_PASSWORD = frozenset({"fastcgi", "grpc", "proxy", "scgi", "uwsgi", "ssl", "by"})

_FILLED_IN_LATER = re.compile(
    # ${X}, #{X}, $(X), {{ .x }}, `command`
    r"[$#]\{.*?\}|\$\(.*?\)|\{\{.*?\}\}|`.*`"
    # $X, $dex.github.clientSecret, $__file{/x}, %X%, %(x)s, <your password>, [placeholder], @x@
    r"|^\$[A-Za-z_][\w.:-]*(\{.*\})?$|^%\(?\w+\)?[%s]$|^<.*>$|^\[[\w .-]*\]$|^@\w+@$"
    # ********, xxxx, change-me, your-token, AKIAIOSFODNN7EXAMPLE
    r"|^(.)\2{3,}$|^(change|replace)[-_ ]?(me|it)\b|^your[-_ ]|redacted|^placeholder$|example(key)?$",
    re.I,
)
_ELSEWHERE = re.compile(
    # A path, a URL, a reference into a store of secrets, an expression of a program.
    r"(file:)?[~.]{0,2}(/[\w.@-]+)+/?|https?://\S+|(arn|env|op|ref\+\w+|secretref|vault|projects/[\w-]+/secrets)[:/].*"
    r"|ENC\[.*|[A-Za-z_][\w.]*(\(.*\)|\[.*\]);?"
)
# Base64 may look like a path: a secret access key may have these 40 characters.
_KEY = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9/+=]{40}")
_A_WORD = re.compile(
    r"true|false|yes|no|on|off|null|nil|none|enabled?|disabled?|required|optional|auto|default|[\d.]+(ms|[smhdw])?",
    re.I,
)
_OBJECT = re.compile(r"([a-z0-9.-]+/)?[a-z]+(-[a-z0-9]+)+")
_LONG = re.compile(r"[A-Za-z0-9/+=_-]{16,}")

_FORMS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----(?:\s|\\n)*([A-Za-z0-9+/]{16})"),
    "an access key": re.compile(r"\b((?:AKIA[A-Z2-7]{16}|LTAI[A-Za-z0-9]{12,26}|AKID[A-Za-z0-9]{32}))\b"),
    "a JSON web token": re.compile(r"\b(eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"),
    "a token": re.compile(r"\b((?:gh[oprsu]_|github_pat_|glpat-|npm_|sk_live_|xox[abprs]-)[A-Za-z0-9][\w-]{15,})"),
    "a URL with a password": re.compile(r"\b[A-Za-z][\w+.-]*://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@[\w.$\[]"),
    "an Authorization header": re.compile(r"(?i:authorization)\W{1,5}(?:Bearer|Basic|bearer|basic)\s+([\w.~+/=-]{8,})"),
}
_TRANSLATIONS = re.compile(
    r"(^|[-_./])(i18n|l10n|lang|locales?|messages|translations?)([-_.][\w.-]*)?\.(ftl|json|po|properties|ya?ml)$", re.I
)
_HINT = re.compile(
    r"pass|pwd|secret|token|key|auth|\bsk\b|://|AKI|LTAI|eyJ|gh[oprsu]_|glpat-|npm_|xox[abprs]-|sk_live_", re.I
)


def credentials(name: str, text: str) -> list[str]:
    """What the credentials in a text are called; empty if it has none.

    `name`: that of the text, as of a variable, an entry of a ConfigMap, a flag. It counts if the text is one line.
    """
    if not _HINT.search(name) and not _HINT.search(text):
        return []
    # What a page says of a password: `login.password=Your password`.
    named = () if _TRANSLATIONS.search(name) else settings(name, text)
    found = [_shown(setting) for setting, value in named if is_credential(setting, value)]
    return [*dict.fromkeys((*found, *by_form(text)))]


def is_credential(name: str, value: str) -> bool:
    """Whether a setting of this name has this value for a credential, neither a placeholder nor a reference."""
    value = value.strip().strip("\"'")
    last = _words(name)[-1]
    if last == "auth":
        # In a file of registries' credentials: USER:PASSWORD.
        return ":" in _decoded(value)
    if not is_name(name) or not _is_filled(value) or (value.isdigit() and "pass" not in name.lower()):
        return False
    if last in ("ak", "sk"):
        return bool(_LONG.fullmatch(value))
    return last != "secret" or not _OBJECT.fullmatch(value)


def is_name(name: str) -> bool:
    """Whether a setting of this name may hold a credential."""
    words, whole = _words(name), plain(name)
    last, before = words[-1], words[-2]
    if "public" in words:
        return False
    if last == "secret" and not _NAMES.search(whole):
        return before in ("", *_WHOSE_SECRET)
    if last == "pass":
        return before not in _NOT_A_PASSWORD
    return bool(last in ("ak", "sk", "pwd") or _TOKENS.fullmatch(last) or _NAMES.search(whole))


def plain(name: str) -> str:
    """The name without case and separators: `accesskey` for `accessKey`, `ACCESS_KEY` and `access-key`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def in_words(words: Iterable[str]) -> Iterator[str]:
    """What the credentials in a command line are called: `--password=X`, `--password X`, `PASSWORD=X`."""
    before = ""
    for word in words:
        if before and not word.startswith("-") and is_credential(before, word):
            yield _shown(before)
        flag, equals, value = word.partition("=")
        before = "" if equals or not word.startswith("-") else word
        # `--from-literal=password=X`
        inner, _, rest = value.partition("=")
        for name, given in ((flag, value), (inner, rest)):
            if given and is_credential(name, given):
                yield _shown(name)
        yield from by_form(word)


def by_form(text: str) -> Iterator[str]:
    """What the credentials are that show by their form, whatever they are called."""
    for what, form in _FORMS.items():
        if any(_is_filled(value) for value in form.findall(text)):
            yield what


def _is_filled(value: str) -> bool:
    text = value.strip()
    if len(text) < 4 or _FILLED_IN_LATER.search(text):
        return False
    if _A_WORD.fullmatch(text):
        # Digits alone are a number, and from six on a password.
        return text.isdigit() and len(text) >= 6
    return bool(_KEY.fullmatch(text)) or not _ELSEWHERE.fullmatch(text)


def _shown(name: str) -> str:
    """The name, unless it may be something else that stands in its place."""
    return name if re.fullmatch(r"[\w .:/@-]{1,64}", name) else "an unusual name"


def _words(name: str) -> list[str]:
    """The words of a name in `accessKey`, `ACCESS_KEY` or `access-key`, after two empty ones."""
    return ["", "", *(word.lower() for word in _WORDS.findall(name))]


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError:
        return ""
