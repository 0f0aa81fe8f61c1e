"""Somebody else who listens where a site would."""

from __future__ import annotations

import socket

import pytest

from local.addresses import AddressBlock
from local.api_site import ApiSite


def listening_on_a_free_block(site: ApiSite, port: int) -> tuple[socket.socket, AddressBlock]:
    """A server on the first block that nobody has, and the block.

    One whose site is just down is not to be robbed, and others that run beside take blocks, too.
    """
    for block in site.registry.free_blocks(site.folder.root):
        try:
            return socket.create_server((block.api_address, port)), block
        except OSError:
            continue
    pytest.skip("every block of addresses of this computer is in use")
