"""Versions of a server: the package, Python and the machine."""

from __future__ import annotations

import platform
import sys

from pyspark_paimon._version import HOME, __version__
from pyspark_paimon.request.message import Message


class ServerFacts(Message):
    """Versions of the driver's Python process."""

    package: str
    shipped: str | None
    """Name of the zip that the package was imported from. None: the package is installed."""
    python: str
    """Major and minor version."""
    machine: str
    """Operating system and processor."""


def server_facts() -> ServerFacts:
    """Return the versions of this process.

    >>> server_facts().package == __version__
    True
    """
    return ServerFacts(
        package=__version__,
        shipped=HOME.name if HOME.suffix == ".zip" else None,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        machine=f"{platform.system()} {platform.machine()}",
    )


__all__ = ["ServerFacts", "server_facts"]
