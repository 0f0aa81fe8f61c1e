"""Defects of any cloud: each changes a cloud that `Harness.new_cloud` has returned, or its table of error codes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import takewhile
from typing import Any

from cloud_controller.cloud import CloudError, NotFound
from cloud_controller.fence import unfenced

Plant = Callable[[Any], None]
Send = Callable[[Any], Any]

# ---------------------------------------------------------------------------------------------- requests of its client

_FURTHER_PAGES = (
    *("NextMarker", "NextToken", "TotalCount", "next_cursor"),
    *(f"{each}_links" for each in ("servers", "loadbalancers", "listeners", "pools", "healthmonitors")),
)


def requests(beginning: str, alter: Callable[[Send, Any], Any]) -> Plant:
    """`alter(send, content)` stands in for each request whose operation begins so; `send(content)` makes it.

    Operations are `ec2 CreateRoute`, `POST network floatingips`, `POST load_balancers`, each as its client calls it.
    """

    def plant(cloud: Any) -> None:
        client = _client(cloud)
        name = "call" if hasattr(client, "call") else "_call"
        real = getattr(client, name)

        def altered(*given: Any, **more: Any) -> Any:
            where = [*takewhile(lambda each: isinstance(each, str), given)]
            if not " ".join(where).startswith(beginning):
                return real(*given, **more)
            return alter(lambda content: real(*where, *content[:-1], **content[-1]), [*given[len(where) :], more])

        setattr(client, name, altered)

    return plant


def _client(cloud: Any) -> Any:
    return next(found for name in ("client", "_api", "_client") if (found := getattr(cloud, name, None)))


def leaves_out(operation: str, *keys: str) -> Plant:
    """The request is sent without these keys."""
    return requests(operation, lambda send, content: send(without(content, *keys)))


def never_sends(operation: str) -> Plant:
    """The request is taken for done, but not sent."""
    return requests(operation, lambda _send, _content: {})


def overlooks(operation: str, *keys: str) -> Plant:
    """These keys of the answer are not looked at."""
    return requests(operation, lambda send, content: without(send(content), *keys))


def reads_one_page(operation: str) -> Plant:
    """The answer seems to be the last page."""
    return overlooks(operation, *_FURTHER_PAGES)


def finds_none(operation: str) -> Plant:
    """What is asked for seems not to exist."""

    def alter(_send: Send, _content: Any) -> Any:
        raise NotFound(operation)

    return requests(operation, alter)


def takes(error: type[CloudError], other: Callable[[str], CloudError], operation: str = "") -> Plant:
    """An error of this request is taken for another one."""

    def alter(send: Send, content: Any) -> Any:
        try:
            return send(content)
        except error as found:
            raise other(str(found)) from found

    return requests(operation, alter)


def swallows(error: type[CloudError], operation: str, answer: Any) -> Plant:
    """A request with this error seems to have had this answer."""

    def alter(send: Send, content: Any) -> Any:
        try:
            return send(content)
        except error:
            return answer

    return requests(operation, alter)


def compares_beginnings(cloud: Any) -> None:
    """The ID of another cluster, which begins with this one's, is taken for it."""
    other = f"{cloud.cluster_id}0"

    def read(text: str) -> str:
        return text.removesuffix("0") if text.endswith(other) else text

    requests("", lambda send, content: _with_texts(send(content), read))(cloud)


def reads_as(operation: str, text: str, other: str) -> Plant:
    """A text of the answer is taken for another one."""
    taken = {text: other}
    return requests(operation, lambda send, content: _with_texts(send(content), lambda each: taken.get(each, each)))


def _with_texts(value: Any, alter: Callable[[str], str]) -> Any:
    """The value with its texts altered, wherever they are in it."""
    if isinstance(value, dict):
        return {key: _with_texts(each, alter) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_texts(each, alter) for each in value]
    return alter(value) if isinstance(value, str) else value


def without(value: Any, *keys: str) -> Any:
    """The value without these keys, wherever they are in it, and without tags of these names."""
    if isinstance(value, dict):
        return {key: without(each, *keys) for key, each in value.items() if key not in keys}
    if isinstance(value, list):
        tags = [each.get("Key") if isinstance(each, dict) else str(each).partition("=")[0] for each in value]
        return [without(each, *keys) for each, tag in zip(value, tags, strict=True) if tag not in keys]
    return value


# ---------------------------------------------------------------------------------------------------------- its methods


def methods(path: str, alter: Callable[..., Any]) -> Plant:
    """`alter(method, *arguments)` stands in for the cloud's method at this path."""

    def plant(cloud: Any) -> None:
        *where, name = path.split(".")
        of = reduce(getattr, where, cloud)
        method = getattr(of, name)
        assert callable(method)
        setattr(of, name, lambda *given, **more: alter(method, *given, **more))

    return plant


def answers(path: str, answer: Any) -> Plant:
    """The method always returns this."""
    return methods(path, lambda *_: answer)


def passes_on(path: str, position: int = 0) -> Plant:
    """The method returns what it is given."""
    return methods(path, lambda _method, *given, **_: given[position])


def guesses(path: str, error: type[CloudError], answer: Any) -> Plant:
    """The method returns this instead of raising the error."""

    def alter(method: Callable[..., Any], *given: Any) -> Any:
        try:
            return method(*given)
        except error:
            return answer

    return methods(path, alter)


def untypes(path: str, error: type[CloudError]) -> Plant:
    """The method raises the error as one without a type."""

    def alter(method: Callable[..., Any], *given: Any, **more: Any) -> Any:
        try:
            return method(*given, **more)
        except error as found:
            raise CloudError(str(found)) from found

    return methods(path, alter)


# ------------------------------------------------------------------------------------------------ the fence


def unfenced_request(operation: str) -> Plant:
    """The fence is not asked before this request."""

    def plant(cloud: Any) -> None:
        client = _client(cloud)

        def alter(send: Send, content: Any) -> Any:
            fence, client.fence = client.fence, unfenced
            try:
                return send(content)
            finally:
                client.fence = fence

        requests(operation, alter)(cloud)

    return plant


def fenced_request(operation: str) -> Plant:
    """The fence is asked before this request, whatever it is."""

    def plant(cloud: Any) -> None:
        client = _client(cloud)
        requests(operation, lambda send, content: (client.fence(), send(content))[1])(cloud)

    return plant


def fence_asked_before_connecting(cloud: Any) -> None:
    def alter(send: Callable[..., Any], *given: Any, fence: Callable[[], None], **more: Any) -> Any:
        fence()
        return send(*given, fence=unfenced, **more)

    methods("_client._http.send", alter)(cloud)


fence_not_passed_on = methods("fence_writes", lambda _method, _fence: None)


def failed_attempts_unobserved(cloud: Any) -> None:
    observe = cloud.observe_calls
    cloud.observe_calls = lambda observer: observe(
        lambda operation, seconds, error: observer(operation, seconds, error) if error is None else None
    )


# --------------------------------------------------------------------------------------------- tables of error codes


def code_missing(table: Any) -> None:
    del table.kinds[next(iter(table.kinds))]


def code_of_nothing(table: Any) -> None:
    table.kinds["NoAPIHasThisCode"] = CloudError
