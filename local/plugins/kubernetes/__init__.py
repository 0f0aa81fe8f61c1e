"""Kubernetes objects as Pulumi's resources: server-side apply to a real API server, with dry runs and awaits."""

from local.plugins.kubernetes.provider import KubernetesProvider

__all__ = ["KubernetesProvider"]
