#!/usr/libexec/platform-python
"""Reads or writes a secret in KMS with the role of this machine: `cluster-secret REGION get|put NAME`.

It runs on the Python that the system itself has (3.6), with nothing installed.
"""

import hashlib
import hmac
import json
import sys
import time
import urllib.parse
import urllib.request
import uuid

METADATA = "http://100.100.100.200/latest/"


def metadata(path: str) -> str:
    asked = {"X-aliyun-ecs-metadata-token-ttl-seconds": "60"}
    token = fetched(urllib.request.Request(METADATA + "api/token", method="PUT", headers=asked))
    known = {"X-aliyun-ecs-metadata-token": token}
    return fetched(urllib.request.Request(METADATA + "meta-data/" + path, headers=known))


def fetched(request: urllib.request.Request) -> str:
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def signed(
    host: str, action: str, parameters: "dict[str, str]", key: "dict[str, str]", now: str, nonce: str
) -> urllib.request.Request:
    """The request, with Alibaba Cloud's signature version 3. Its parameters are in the body: secrets are in no URL."""
    body = urllib.parse.urlencode(parameters).encode()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "host": host,
        "x-acs-action": action,
        "x-acs-content-sha256": hashlib.sha256(body).hexdigest(),
        "x-acs-date": now,
        "x-acs-security-token": key["SecurityToken"],
        "x-acs-signature-nonce": nonce,
        "x-acs-version": "2016-01-20",
    }
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = "\n".join(["POST", "/", "", lines, names, headers["x-acs-content-sha256"]])
    text = "ACS3-HMAC-SHA256\n" + hashlib.sha256(canonical.encode()).hexdigest()
    signature = hmac.new(key["AccessKeySecret"].encode(), text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={key['AccessKeyId']},SignedHeaders={names}"
    headers["authorization"] = f"ACS3-HMAC-SHA256 {credential},Signature={signature}"
    return urllib.request.Request(f"https://{host}/", data=body, headers=headers, method="POST")


def main(region: str, verb: str, name: str) -> None:
    key = json.loads(metadata("ram/security-credentials/" + metadata("ram/security-credentials/").strip()))
    nonce = uuid.uuid4().hex
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    parameters = {"SecretName": name}
    if verb == "put":
        parameters.update(VersionId=nonce, SecretData=sys.stdin.read())
    action = "PutSecretValue" if verb == "put" else "GetSecretValue"
    answer = fetched(signed(f"kms.{region}.aliyuncs.com", action, parameters, key, now, nonce))
    if verb == "get":
        sys.stdout.write(json.loads(answer)["SecretData"])


if __name__ == "__main__":
    main(*sys.argv[1:])
