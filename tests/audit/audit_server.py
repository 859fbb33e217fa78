"""One server has the files of a module of tests, one after the other: none of them ends it."""

from __future__ import annotations

import functools

from consan.audit.runner import SERVERS, AuditServer


@functools.lru_cache(maxsize=1)
def server() -> AuditServer:
    """The server."""
    return AuditServer()


def end() -> None:
    """End it, and those of `verify`."""
    if server.cache_info().currsize:
        server().close()
        server.cache_clear()
    SERVERS.close()
