"""What counts as a credential, in which text."""

from __future__ import annotations

import base64
import json

import pytest

from policy.credentials import credentials, in_words
from tests.policy.ordinary_config_maps import ORDINARY

HUSH = "hUsh4Ever"
"""The value of every credential here, or a part of it: no name may contain it."""
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA{HUSH}\n-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize(("entry", "text"), ORDINARY.items(), ids=ORDINARY)
def test_ordinary_entries_of_config_maps_hold_none(entry: str, text: str) -> None:
    assert credentials(entry.partition(": ")[2], text) == []


@pytest.mark.parametrize(
    "name",
    [
        *("secret", "passwd", "auth-token", "AWS_SECRET_ACCESS_KEY", "AccessKeySecret", "access-key-id", "DB_PASS"),
        *("client_secret", "github-token", "ADMIN_PWD", "TENCENTCLOUD_SECRET_ID", "aadClientSecret", "apiKey"),
        "spring.mail.password",
    ],
)
def test_a_text_of_one_line_is_a_credential_by_its_name(name: str) -> None:
    assert credentials(name, f"{HUSH}\n") == [name]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"[Global]\ntoken = {HUSH} # of the cloud\n", ["token"]),
        (f"[default]\naws_access_key_id = AKIAABCDEFGHIJKLMNOP\naws_secret_access_key = {HUSH}\n",
         ["aws_access_key_id", "aws_secret_access_key", "an access key"]),
        (f"bare\n[Global]\npassword = \"{HUSH}\"\n", ["password"]),
        (f"export HOST=db\nexport DB_PASSWORD='{HUSH}'\n", ["DB_PASSWORD"]),
        (f"a.b.password: {HUSH}\n", ["a.b.password"]),
        (f"kind: A\n---\nkind: B\nspec: {{auth: {{token: {HUSH}}}}}\n", ["token"]),
        (json.dumps({"a": [{"b": {"accessKeySecret": HUSH}}]}), ["accessKeySecret"]),
        (json.dumps({"a": {"secret_key": HUSH}}, indent=2), ["secret_key"]),
        (f"users:\n- name: admin\n  user:\n    client-certificate-data: QUJD\n    client-key-data: {HUSH}\n",
         ["client-key-data"]),
        (f"users: [{{name: a, user: {{token: {HUSH}}}}}, {{name: b, user: {{username: b, password: {HUSH}}}}}]\n",
         ["token", "password"]),
        (f"password: |\n  {HUSH}\n", ["password"]),
        (f"env:\n- name: DB_PASSWORD\n  value: {HUSH}\n", ["DB_PASSWORD"]),
        (f"data:\n  cloud.conf: |\n    [Global]\n    token = {HUSH}\n", ["token"]),
        (f"terraform = true\nsecret_key = \"{HUSH}\"\n", ["secret_key"]),
        (f"HTTP_User   es\nHTTP_Passwd {HUSH}\n", ["HTTP_Passwd"]),
        (f"{{{{ if .x }}}}\npassword: {HUSH}\n{{{{ end }}}}\n", ["password"]),
        (f"since: 2024-99-99\ntoken: {HUSH}\n", ["token"]),
        (json.dumps({"auths": {"registry.example": {"auth": base64.b64encode(f"me:{HUSH}".encode()).decode()}}}),
         ["auth"]),
        ("pin: 1\npassword: 12345678\n", ["password"]),
        ("pat: ghp_16C7e42F292c6912E7710c838347Ae178B4a\n", ["a token"]),
        (f"host: db\nurl: postgres://app:{HUSH}@db:5432/app\n", ["a URL with a password"]),
        (f"#!/bin/sh\ncurl -H 'Authorization: Bearer {HUSH}' https://example.com\n", ["an Authorization header"]),
        (PEM, ["a private key"]),
        (json.dumps({"type": "service_account", "private_key": PEM}), ["a private key"]),
        (f"x: eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.{HUSH}-{HUSH}\n", ["a JSON web token"]),
    ],
)  # fmt: skip
def test_a_file_holds_credentials_in_whatever_format_it_is(text: str, found: list[str]) -> None:
    assert sorted(credentials("file", text)) == sorted(found)


@pytest.mark.parametrize(
    "value",
    [
        *("", '""', "${PASSWORD}", "$(PASSWORD)", "{{ .Values.password }}", "$PASSWORD", "<password>", "[placeholder]"),
        *(
            "****",
            "changeme",
            "your-password",
            "/run/secrets/password",
            "file:/etc/password",
            "vault:secret/data/db#pw",
        ),
        *("arn:aws:secretsmanager:eu-central-1:1:secret:db", "https://vault.example/v1", "true", "null", "24h", "xy"),
    ],
)
def test_placeholders_and_references_are_no_credentials(value: str) -> None:
    assert credentials("file", f"host: db\npassword: {value}\n") == []
    assert credentials("password", value) == []


@pytest.mark.parametrize(
    "name",
    ["public_token", "SECRET_NAME", "tls-secret", "password_file", "tokenFile", "proxy_pass", "passthrough", "key"],
)
def test_names_of_other_things_are_no_credentials(name: str) -> None:
    assert credentials(name, HUSH) == []


def test_a_secret_access_key_that_looks_like_a_path_is_one() -> None:
    assert credentials("aws_secret_access_key", "/wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz1234a") == ["aws_secret_access_key"]


def test_names_that_could_be_values_are_not_shown() -> None:
    assert credentials("file", json.dumps({f"{HUSH}§ password": HUSH})) == ["an unusual name"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([f"--access-key={HUSH}"], ["--access-key"]),
        (["--password", HUSH], ["--password"]),
        (["-token", HUSH], ["-token"]),
        ([f"AWS_SECRET_ACCESS_KEY={HUSH}", "ccm"], ["AWS_SECRET_ACCESS_KEY"]),
        ([f"--from-literal=password={HUSH}"], ["password"]),
        (["-H", f"Authorization: Bearer {HUSH}"], ["an Authorization header"]),
        (["--password-file", HUSH, "--token-file=/run/token", "--secure-port=10258"], []),
        (["--password", "--verbose", HUSH], []),
        (["--token=$(TOKEN)", "--use-token", "true", "--tls-private-key-file", "/tls/tls.key"], []),
    ],
)
def test_words_of_a_command_line_hold_credentials_by_their_flags(words: list[str], found: list[str]) -> None:
    assert [*in_words(words)] == found


@pytest.mark.parametrize(
    "text",
    [
        "region: eu\nall: &all\n  token: hush\n  again: *all\n",
        "token: hush\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(2, 40)),
        "token: hush\na: " + "[" * 200_000,
        "- token: hush\n" + "- " * 200_000,
        '{"a": ' + "[" * 200_000 + "\ntoken: hush",
        "token: hush\n" + "host: db\n" * 50_000,
    ],
    ids=["of itself", "millions", "deep", "deep lists", "deep JSON", "long"],
)
def test_texts_that_are_made_to_take_long_are_read(text: str) -> None:
    """Followed to the end, or read by recursion, they would take minutes or end the process."""
    assert credentials("file", text) == ["token"]
