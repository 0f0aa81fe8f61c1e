"""The error of a site, for every module that works on one."""

from __future__ import annotations


class SiteError(Exception):
    """An operation on the site failed; the message says why and what to do."""
