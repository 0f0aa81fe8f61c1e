"""The actions that workflows may use, each with the version and the commit that somebody has compared.

A commit comes from the action's own repository: the one that the version's tag points to.
"""

from __future__ import annotations

ACTIONS = {
    "actions/cache": ("v5.0.5", "27d5ce7f107fe9357f9df03efb73ab90386fccae"),
    "actions/checkout": ("v7.0.1", "3d3c42e5aac5ba805825da76410c181273ba90b1"),
    "actions/download-artifact": ("v8.0.1", "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c"),
    "actions/github-script": ("v8.0.0", "ed597411d8f924073f98dfc5c65a23a2325f34cd"),
    "actions/upload-artifact": ("v7.0.0", "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f"),
    "aliyun/configure-aliyun-credentials-action": ("v1.0.7", "b347e60e64028a4d567a8f31ca42e1b0706c3c99"),
    "aws-actions/configure-aws-credentials": ("v6.2.3", "e6de054238d6b7531b4efff3b6587d9aade6a06c"),
    "github/codeql-action/upload-sarif": ("v4.36.2", "8aad20d150bbac5944a9f9d289da16a4b0d87c1e"),
    "pulumi/actions": ("v7.0.0", "8e5e406f4007fca908480587cb9893c07090f58d"),
    "pulumi/auth-actions": ("v2.1.0", "141415910c3beb54e03b48e9057c204c97b956f2"),
}
