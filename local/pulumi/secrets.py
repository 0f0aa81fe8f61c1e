"""Encrypts secrets in stack files and state: Pulumi's passphrase format, AES-256-GCM under a PBKDF2 key.

A stack file's `encryptionsalt` (in a state: `secrets_providers.state.salt`) is `v1:SALT:v1:NONCE:CIPHERTEXT`, all
base64; the last three fields are the word "pulumi" encrypted with the key, which detects a wrong passphrase. A
ciphertext on its own is `v1:NONCE:CIPHERTEXT`, its last 16 bytes being the tag. The plaintext is a string in a stack
file and JSON text in a state. So Pulumi's CLI reads files written here, and vice versa.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from functools import cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ITERATIONS: Final = 1_000_000
SALT_BYTES: Final = 8
NONCE_BYTES: Final = 12
PROOF: Final = "pulumi"
PASSPHRASE_VARIABLE: Final = "PULUMI_CONFIG_PASSPHRASE"


class SecretsError(Exception):
    """A secret cannot be decrypted or encrypted; the message never contains the secret or the passphrase."""


class WrongPassphraseError(SecretsError):
    """The passphrase is not the one that the secrets were encrypted with."""


class PassphraseCrypter:
    """A crypter whose key is derived from a passphrase and a salt. Stack file and state keep the `salt`."""

    def __init__(self, key: bytes, salt: str) -> None:
        self._cipher = AESGCM(key)
        self.salt = salt

    def encrypt(self, plaintext: str) -> str:
        """A ciphertext `v1:NONCE:CIPHERTEXT`; the same text gives a different one each time."""
        return _encrypt(self._cipher, plaintext)

    def decrypt(self, ciphertext: str) -> str:
        """The plaintext. Raises SecretsError if the ciphertext is damaged or of another key."""
        return _decrypt(self._cipher, ciphertext)


def open_crypter(passphrase: str, salt: str) -> PassphraseCrypter:
    """The crypter of an existing `encryptionsalt`. Raises WrongPassphraseError, or SecretsError for a damaged salt."""
    key = _key(passphrase, _salt_bytes(salt))
    try:
        proof = _decrypt(AESGCM(key), salt.split(":", 2)[2])
    except SecretsError as error:
        raise WrongPassphraseError("the passphrase does not match the salt") from error
    if proof != PROOF:
        raise WrongPassphraseError("the passphrase does not match the salt")
    return PassphraseCrypter(key, salt)


def new_crypter(passphrase: str) -> PassphraseCrypter:
    """A crypter with a new random salt, for a stack that has none yet."""
    salt = os.urandom(SALT_BYTES)
    key = _key(passphrase, salt)
    return PassphraseCrypter(key, f"v1:{_to_base64(salt)}:{_encrypt(AESGCM(key), PROOF)}")


@cache  # a million rounds take half a second
def _key(passphrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", passphrase.encode(), salt, ITERATIONS, dklen=32)


def _salt_bytes(salt: str) -> bytes:
    fields = salt.split(":", 2)
    if len(fields) != 3 or fields[0] != "v1":
        raise SecretsError("encryptionsalt is not in the form v1:SALT:v1:NONCE:CIPHERTEXT")
    return _from_base64(fields[1], "encryptionsalt")


def _encrypt(cipher: AESGCM, plaintext: str) -> str:
    nonce = os.urandom(NONCE_BYTES)
    return f"v1:{_to_base64(nonce)}:{_to_base64(cipher.encrypt(nonce, plaintext.encode(), None))}"


def _decrypt(cipher: AESGCM, ciphertext: str) -> str:
    fields = ciphertext.split(":")
    if len(fields) != 3 or fields[0] != "v1":
        raise SecretsError("the ciphertext is not in the form v1:NONCE:CIPHERTEXT")
    nonce = _from_base64(fields[1], "ciphertext")
    data = _from_base64(fields[2], "ciphertext")
    if len(nonce) != NONCE_BYTES:
        raise SecretsError(f"the ciphertext's nonce has {len(nonce)} bytes, not {NONCE_BYTES}")
    try:
        return cipher.decrypt(nonce, data, None).decode()
    except InvalidTag as error:
        raise SecretsError("the ciphertext is damaged or was made with another key") from error


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise SecretsError(f"the {what} is not base64") from error
