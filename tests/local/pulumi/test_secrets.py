"""Secrets are written in Pulumi's passphrase format, and those of the real CLI are read."""

import pytest

from local.pulumi.secrets import SecretsError, new_crypter, open_crypter

SALT = "v1:rYQeAYN4PdY=:v1:nOLX8j85G3iqP9Un:4pAdZY0YbZY4lPlFIvps9VF2dowiZw=="
PASSPHRASE = "sample-passphrase"
CLI_TOKEN = "v1:j539a96oGgFTQ7qC:mEccjC/iag3fFdGEZIn6ZUQMRfut"


def test_a_ciphertext_of_the_cli_is_read() -> None:
    assert open_crypter(PASSPHRASE, SALT).decrypt(CLI_TOKEN) == '"t0p"'


def test_a_crypter_with_the_same_salt_and_passphrase_decrypts() -> None:
    made = new_crypter("open sesame")
    ciphertext = made.encrypt("grüße")

    assert "grüße" not in ciphertext
    assert open_crypter("open sesame", made.salt).decrypt(ciphertext) == "grüße"


def test_the_same_text_never_gives_the_same_ciphertext() -> None:
    crypter = open_crypter(PASSPHRASE, SALT)
    assert crypter.encrypt("x") != crypter.encrypt("x")


def test_a_wrong_passphrase_is_noticed_when_the_crypter_is_opened() -> None:
    with pytest.raises(SecretsError, match="passphrase does not match"):
        open_crypter("wrong", SALT)


@pytest.mark.parametrize("broken", ["", "v2:a:b", "v1:AAAA:AAAA", CLI_TOKEN[:-4] + "AAAA", "v1:%%%:AAAA"])
def test_a_damaged_ciphertext_is_an_error_and_not_garbage(broken: str) -> None:
    with pytest.raises(SecretsError):
        open_crypter(PASSPHRASE, SALT).decrypt(broken)


@pytest.mark.parametrize("broken", ["", "v1:", "v1:%%%:v1:a:b", "v3:a:v1:b:c"])
def test_a_damaged_salt_is_an_error(broken: str) -> None:
    with pytest.raises(SecretsError):
        open_crypter(PASSPHRASE, broken)


def test_a_passphrase_that_cannot_be_encoded_fails_when_its_key_is_needed() -> None:
    with pytest.raises(UnicodeEncodeError):
        open_crypter("\udcff", SALT)
