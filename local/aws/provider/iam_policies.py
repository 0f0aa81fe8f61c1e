"""IAM: policies, their attachments, and issuers of web identities."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from local.aws.provider.api import Api, AwsError, Deadline
from local.aws.provider.iam import TAKEN, change_tags, document
from local.aws.provider.kind import (
    Change,
    Creation,
    Kind,
    find_or_make,
    made_by,
    present,
    tag_list,
    tag_outputs,
)
from local.plugins.provider import ProviderError
from local.plugins.values import PropertyMap, Value

_MOST_VERSIONS: Final = 5
"""How many versions of a policy AWS keeps."""


class Policy(Kind):
    """A customer managed policy; its id is its ARN."""

    type = "aws:iam/policy:Policy"
    inputs = frozenset({"name", "namePrefix", "path", "description", "policy", "tags"})
    required = frozenset({"policy"})
    replaces = frozenset({"name", "namePrefix", "path", "description"})
    defaults: ClassVar[Mapping[str, Value]] = {"path": "/"}
    autonamed = True
    documents = frozenset({"policy"})

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs

        def create() -> str:
            answer = api.call(
                "iam",
                "create_policy",
                PolicyName=inputs["name"],
                Path=inputs["path"],
                PolicyDocument=inputs["policy"],
                Tags=tag_list(creation.tags),
                **present(Description=inputs.get("description")),
            )
            return str(answer["Policy"]["Arn"])

        def left() -> str | None:
            policies = api.all("iam", "list_policies", "Policies", Scope="Local", PathPrefix=inputs["path"])
            arn = next((p["Arn"] for p in policies if p["PolicyName"] == inputs["name"]), None)
            policy = api.one("iam", "get_policy", "Policy", PolicyArn=arn) if arn else None
            return str(arn) if policy and made_by(policy.get("Tags"), creation.token) else None

        return find_or_make(create, left, TAKEN)

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        del known
        policy = api.one("iam", "get_policy", "Policy", PolicyArn=id)
        if policy is None:
            return None
        current = policy["DefaultVersionId"]
        version = api.call("iam", "get_policy_version", PolicyArn=id, VersionId=current)["PolicyVersion"]
        return {
            "arn": id,
            "name": policy["PolicyName"],
            "path": policy["Path"],
            "policyId": policy["PolicyId"],
            "attachmentCount": policy.get("AttachmentCount", 0),
            "policy": document(version["Document"]),
            **present(description=policy.get("Description") or None),
            **tag_outputs(policy.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        if "policy" in change.changed:
            others = [v for v in self._versions(api, id) if not v["IsDefaultVersion"]]
            if len(others) >= _MOST_VERSIONS - 1:
                oldest = min(others, key=lambda v: int(v["VersionId"].removeprefix("v")))
                api.call("iam", "delete_policy_version", PolicyArn=id, VersionId=oldest["VersionId"])
            document = change.news["policy"]
            api.call("iam", "create_policy_version", PolicyArn=id, PolicyDocument=document, SetAsDefault=True)
        change_tags(api, "policy", {"PolicyArn": id}, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs, deadline
        for version in self._versions(api, id):
            if not version["IsDefaultVersion"]:
                api.call("iam", "delete_policy_version", PolicyArn=id, VersionId=version["VersionId"])
        api.call("iam", "delete_policy", PolicyArn=id)

    def _versions(self, api: Api, id: str) -> list[dict[str, Any]]:
        versions: list[dict[str, Any]] = api.call("iam", "list_policy_versions", PolicyArn=id)["Versions"]
        return versions


class RolePolicyAttachment(Kind):
    """The attachment of a policy to a role."""

    type = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    inputs = frozenset({"role", "policyArn"})
    required = inputs
    replaces = inputs
    taggable = False

    def make(self, api: Api, creation: Creation) -> str:
        role, policy = creation.inputs["role"], creation.inputs["policyArn"]
        # Attaching twice is not an error.
        api.call("iam", "attach_role_policy", RoleName=role, PolicyArn=policy)
        return f"{role}-{hashlib.sha256(policy.encode()).hexdigest()[:12]}"

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        # An import has only the id.
        role, policy = (known["role"], known["policyArn"]) if known else id.partition("/")[::2]
        if not policy:
            raise ProviderError(f"{id!r} is not the id of an attachment: write ROLE/POLICY-ARN")
        try:
            attached = api.call("iam", "list_attached_role_policies", RoleName=role)["AttachedPolicies"]
        except AwsError as error:
            if error.missing:
                return None
            raise
        there = any(p["PolicyArn"] == policy for p in attached)
        return {"role": role, "policyArn": policy} if there else None

    def change(self, api: Api, id: str, change: Change) -> None:
        """No input can change in place."""

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del id, deadline
        api.call("iam", "detach_role_policy", RoleName=outputs["role"], PolicyArn=outputs["policyArn"])


class OpenIdConnectProvider(Kind):
    """An issuer of tokens that AWS trusts; its id is its ARN."""

    type = "aws:iam/openIdConnectProvider:OpenIdConnectProvider"
    inputs = frozenset({"url", "clientIdLists", "thumbprintLists", "tags"})
    required = frozenset({"url", "clientIdLists"})
    replaces = frozenset({"url"})

    def make(self, api: Api, creation: Creation) -> str:
        inputs = creation.inputs

        def create() -> str:
            answer = api.call(
                "iam",
                "create_open_id_connect_provider",
                Url=_url(inputs["url"]),
                ClientIDList=inputs["clientIdLists"],
                Tags=tag_list(creation.tags),
                **present(ThumbprintList=inputs.get("thumbprintLists")),
            )
            return str(answer["OpenIDConnectProviderArn"])

        def left() -> str | None:
            for entry in api.call("iam", "list_open_id_connect_providers")["OpenIDConnectProviderList"]:
                arn = str(entry["Arn"])
                found = self._found(api, arn)
                if found and _url(found["Url"]) == _url(inputs["url"]) and made_by(found.get("Tags"), creation.token):
                    return arn
            return None

        return find_or_make(create, left, TAKEN)

    def read(self, api: Api, id: str, known: PropertyMap) -> PropertyMap | None:
        found = self._found(api, id)
        if found is None:
            return None
        # AWS drops the scheme; that is not a difference.
        given = str(known.get("url", ""))
        url = given if _url(given) == _url(found["Url"]) else found["Url"]
        return {
            "arn": id,
            "url": url,
            "clientIdLists": found.get("ClientIDList", []),
            "thumbprintLists": found.get("ThumbprintList", []),
            **tag_outputs(found.get("Tags")),
        }

    def change(self, api: Api, id: str, change: Change) -> None:
        olds, news = change.olds, change.news
        before, after = set(olds["clientIdLists"]), set(news["clientIdLists"])
        for client in sorted(after - before):
            api.call("iam", "add_client_id_to_open_id_connect_provider", OpenIDConnectProviderArn=id, ClientID=client)
        for client in sorted(before - after):
            api.call(
                "iam", "remove_client_id_from_open_id_connect_provider", OpenIDConnectProviderArn=id, ClientID=client
            )
        if "thumbprintLists" in change.changed and (thumbprints := news.get("thumbprintLists")):
            api.call(
                "iam",
                "update_open_id_connect_provider_thumbprint",
                OpenIDConnectProviderArn=id,
                ThumbprintList=thumbprints,
            )
        change_tags(api, "open_id_connect_provider", {"OpenIDConnectProviderArn": id}, change)

    def remove(self, api: Api, id: str, outputs: PropertyMap, deadline: Deadline) -> None:
        del outputs, deadline
        api.call("iam", "delete_open_id_connect_provider", OpenIDConnectProviderArn=id)

    def _found(self, api: Api, arn: str) -> dict[str, Any] | None:
        try:
            return api.call("iam", "get_open_id_connect_provider", OpenIDConnectProviderArn=arn)
        except AwsError as error:
            if error.missing:
                return None
            raise


def _url(text: str) -> str:
    return f"https://{text.removeprefix('https://')}"
