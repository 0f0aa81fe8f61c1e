"""The credentials and region of calls to AWS: boto3's default chain, and the role in the cloud config.

The default chain is the environment, web identity (IRSA), shared files, a container's role, and last the instance
metadata service, which is not called if any other source has credentials. Nothing is read before the first call.
"""

from __future__ import annotations

import logging
import os
import re
from typing import Any

import boto3
import botocore.session
from botocore.awsrequest import AWSRequest
from botocore.config import Config as ClientConfig
from botocore.credentials import AssumeRoleCredentialFetcher, CredentialProvider, DeferredRefreshableCredentials
from botocore.loaders import create_loader
from botocore.utils import IMDSRegionProvider

from cloud_controller.cloud_errors import InvalidConfiguration
from cloud_controller.clouds.aws.config import Config

_SESSION_NAME = "cloud-controller"
_METADATA_ATTEMPTS = 3
_SETTINGS = ClientConfig(
    connect_timeout=5.0,
    read_timeout=30.0,
    max_pool_connections=64,
    # What is repeated, and when, `cloud_controller.retries` says: for the calls that fetch credentials, too.
    retries={"total_max_attempts": 1, "mode": "standard"},
    tcp_keepalive=True,
    user_agent_extra=_SESSION_NAME,
)
_ACCOUNT = re.compile(r"arn:[^:]+:[^:]+:[^:]*:(?P<account>\d+):")

_MODELS = create_loader()
"""The models of AWS's services, megabytes each, read once in a process."""

# At debug it logs each request with its signature and session token, at info where it looked for credentials.
logging.getLogger("botocore").setLevel(logging.WARNING)


class _InOneLine(logging.Filter):
    """botocore logs a whole traceback at each call with credentials that cannot be renewed; keep one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1]:
            record.msg, record.args, record.exc_info = f"{record.getMessage()} {record.exc_info[1]}", (), None
        return True


logging.getLogger("botocore.credentials").addFilter(_InOneLine())


def session_of(config: Config) -> boto3.Session:
    """A session with the credentials and region of the config.

    Raises InvalidConfiguration if neither it, the environment nor the metadata service defines a region.
    """
    own = _Session(config)
    # AWS_REGION is the other SDKs' name, and what EKS sets in pods; boto3 knows AWS_DEFAULT_REGION and profiles.
    told = config.region or os.environ.get("AWS_REGION") or own.get_config_variable("region")
    region = told or _region_of_this_machine(own)
    own.set_config_variable("region", region)
    if config.role_arn is None:
        return boto3.Session(botocore_session=own)
    assuming = _Session(config)
    assuming.set_config_variable("region", region)
    assuming.get_component("credential_provider").insert_before("env", _Role(own, config, config.role_arn, region))
    return boto3.Session(botocore_session=assuming)


class _Session(botocore.session.Session):
    """boto3's, whose clients call where the cloud config says: those too that fetch credentials."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self._cloud_config = config
        self.register_component("data_loader", _MODELS)
        # One lost packet to the metadata service must not end the credentials.
        self.set_config_variable("metadata_service_num_attempts", _METADATA_ATTEMPTS)
        self.set_default_client_config(_SETTINGS)

    def create_client(self, service_name: str, *args: Any, **kwargs: Any) -> Any:
        """See boto3."""
        override = self._cloud_config.override(service_name, str(self.get_config_variable("region")))
        if override is None:
            return super().create_client(service_name, *args, **kwargs)
        client = super().create_client(service_name, *args, **{**kwargs, "endpoint_url": override.url})
        signing = {"region": override.signing_region}
        if override.signing_name is not None:
            signing["signing_name"] = override.signing_name
        client.meta.events.register("before-sign", _signed_as(signing))
        return client


def _region_of_this_machine(session: botocore.session.Session) -> str:
    region = IMDSRegionProvider(session).provide()
    if not region:
        why = "missing; neither AWS_REGION nor this machine's instance metadata service defines the region"
        raise InvalidConfiguration("cloud config: [Global] Region", why)
    return str(region)


class _Role(CredentialProvider):
    """The role in the cloud config, assumed with another session's credentials and renewed before they expire."""

    METHOD = "assume-role"
    CANONICAL_NAME = None

    def __init__(self, source: botocore.session.Session, config: Config, role_arn: str, region: str) -> None:
        super().__init__(source)
        self._config = config
        self._role_arn = role_arn
        self._region = region

    def load(self) -> DeferredRefreshableCredentials | None:
        """Called by the session at its first call."""
        source = self.session.get_credentials()
        if source is None:
            return None
        fetcher = AssumeRoleCredentialFetcher(
            client_creator=self._client,
            source_credentials=source,
            role_arn=self._role_arn,
            extra_args={"RoleSessionName": _SESSION_NAME},
        )
        return DeferredRefreshableCredentials(method=self.METHOD, refresh_using=fetcher.fetch_credentials)

    def _client(self, service: str, **credentials: Any) -> Any:
        client = self.session.create_client(service, region_name=self._region, **credentials)
        if source_arn := self._config.source_arn:
            client.meta.events.register("before-call.sts.AssumeRole", _on_behalf_of(source_arn))
        return client


def _on_behalf_of(source_arn: str) -> Any:
    """Send STS the resource for which the role is assumed: its trust policy may require it."""
    account = _ACCOUNT.match(source_arn)

    def add_headers(params: dict[str, Any], **_: Any) -> None:
        params["headers"]["x-amz-source-arn"] = source_arn
        if account:
            params["headers"]["x-amz-source-account"] = account["account"]

    return add_headers


def _signed_as(signing: dict[str, str]) -> Any:
    def handler(request: AWSRequest, **_: Any) -> None:
        request.context["signing"] = {**request.context.get("signing", {}), **signing}

    return handler
