"""Tokens that prove an identity, as an issuer signs them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def signed_token(claims: Mapping[str, Any], key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """A JWT with these claims, by RSA or ES256."""
    signed = ".".join(_encoded(json.dumps(each).encode()) for each in ({"alg": "any"}, claims))
    if isinstance(key, rsa.RSAPrivateKey):
        return f"{signed}.{_encoded(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encoded(r.to_bytes(32) + s.to_bytes(32))}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
