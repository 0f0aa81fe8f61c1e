"""Tokens that prove an identity (JWT), as clouds verify them: the issuer's signature and what it claims. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature


class NotAToken(ValueError):
    """The text is no token."""


class NotSigned(ValueError):
    """The issuer's key did not sign the token, or is of a kind that is not known here."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says; true only if its signature is verified."""

    issuer: str
    subject: str
    audiences: tuple[str, ...]
    expires: float
    """Seconds since 1970."""


def claims_of(token: str) -> Claims:
    """The token's unverified claims. Raises NotAToken."""
    try:
        claims = json.loads(_decoded(token.split(".")[1]))
        audiences: Any = claims["aud"]
        told = tuple(audiences) if isinstance(audiences, list) else (str(audiences),)
        return Claims(str(claims["iss"]), str(claims["sub"]), told, float(claims["exp"]))
    except (IndexError, KeyError, TypeError, ValueError):
        raise NotAToken("not a valid JWT") from None


def verify_signature(token: str, public_key: str) -> None:
    """Raise NotSigned unless this key (PEM; RSA or an elliptic curve of 256 bits) signed the token."""
    signed, _, signature = token.rpartition(".")
    key = serialization.load_pem_public_key(public_key.encode())
    raw = _decoded(signature)
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(raw, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(key, ec.EllipticCurvePublicKey) and len(raw) == 64:
            pair = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
            key.verify(pair, signed.encode(), ec.ECDSA(hashes.SHA256()))
        else:
            raise NotSigned("the issuer's key does not fit the signature")
    except InvalidSignature:
        raise NotSigned("the signature is not the issuer's") from None


def _decoded(part: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise NotAToken("not a valid JWT") from None
