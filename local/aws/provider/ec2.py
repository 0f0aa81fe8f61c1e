"""Common behaviour of EC2's types: tags, tokens, and descriptions by id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from local.aws.provider.api import Api, AwsError, Deadline
from local.aws.provider.kind import TOKEN, Change, Creation, Kind, tag_changes, tag_list


class Ec2Kind(Kind):
    """A type that EC2 describes by a list of ids, and tags at creation."""

    noun: ClassVar[str]
    """Its name in tag specifications, such as `route-table`."""
    describe: ClassVar[str]
    items: ClassVar[str]
    """The operation that describes it, and the list in its answer."""
    ids: ClassVar[str]
    """The parameter that names ids; its singular is the id's name in an answer."""

    def tagged(self, creation: Creation) -> list[dict[str, Any]]:
        """The tag specifications of a create."""
        return [{"ResourceType": self.noun, "Tags": tag_list(creation.tags)}]

    def found(self, api: Api, id: str) -> dict[str, Any] | None:
        """The object as EC2 describes it; None if it is gone."""
        return api.one("ec2", self.describe, self.items, **{self.ids: [id]})

    def made_before(self, api: Api, creation: Creation) -> str | None:
        """The id of what this same create made in a killed run: most creates of EC2 have no token."""
        filters = [{"Name": f"tag:{TOKEN}", "Values": [creation.token]}]
        found = api.all("ec2", self.describe, self.items, Filters=filters)
        return str(found[0][self.ids.removesuffix("s")]) if found else None

    def change_tags(self, api: Api, id: str, change: Change) -> None:
        """Set the tags to the desired ones."""
        set_tags, gone = tag_changes(change.olds, change.news)
        if set_tags:
            api.call("ec2", "create_tags", Resources=[id], Tags=tag_list(set_tags))
        if gone:
            api.call("ec2", "delete_tags", Resources=[id], Tags=[{"Key": key} for key in gone])


def arn(api: Api, found: dict[str, Any], noun: str, id: str) -> str:
    """The ARN of an object of EC2."""
    return f"arn:aws:ec2:{api.region}:{found.get('OwnerId', '')}:{noun}/{id}"


def until_state(api: Api, kind: Ec2Kind, id: str, state: str, deadline: Deadline) -> None:
    """Wait until EC2 reports the object in this state. Raises WaitEnded."""
    deadline.until(f"{id} to be {state}", lambda: (kind.found(api, id) or {}).get("State") == state)


def until_deleted(deadline: Deadline, what: str, delete: Callable[[], object]) -> None:
    """Delete an object, and retry while AWS reports it in use. Raises WaitEnded, AwsError."""

    def gone() -> bool:
        try:
            delete()
        except AwsError as error:
            if error.code != "DependencyViolation":
                raise
            return False
        return True

    deadline.until(what, gone)
