"""Who the controllers are to Keystone: a user with a password, or an application credential."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Named:
    """A project, user or domain: by ID, or by name. A name of a project or user is one of its domain."""

    id: str | None = None
    name: str | None = None
    domain_id: str | None = None
    domain_name: str | None = None

    def body(self) -> dict[str, Any]:
        """As Keystone reads it."""
        if self.id:
            return {"id": self.id}
        domain = {"id": self.domain_id} if self.domain_id else {"name": self.domain_name}
        return {"name": self.name} | ({"domain": domain} if any(domain.values()) else {})


@dataclass(frozen=True, slots=True)
class Password:
    """A user's password, for one project or, without one, the user's default project."""

    user: Named
    password: str = field(repr=False)
    project: Named | None = None

    def body(self) -> dict[str, Any]:
        """The body of `POST /v3/auth/tokens`."""
        identity = {"methods": ["password"], "password": {"user": {**self.user.body(), "password": self.password}}}
        auth: dict[str, Any] = {"identity": identity}
        if self.project is not None:
            auth["scope"] = {"project": self.project.body()}
        return {"auth": auth}


@dataclass(frozen=True, slots=True)
class ApplicationCredential:
    """An application credential, by ID or by its user and name; the project is that in which it was made."""

    secret: str = field(repr=False)
    id: str | None = None
    name: str | None = None
    user: Named | None = None

    def body(self) -> dict[str, Any]:
        """The body of `POST /v3/auth/tokens`."""
        who: dict[str, Any] = {"id": self.id} if self.id else {"name": self.name}
        if not self.id and self.user is not None:
            who["user"] = self.user.body()
        identity = {"methods": ["application_credential"], "application_credential": {**who, "secret": self.secret}}
        return {"auth": {"identity": identity}}


Credentials = Password | ApplicationCredential
