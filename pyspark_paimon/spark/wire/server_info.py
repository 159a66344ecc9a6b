"""What a server has: the package, where it lies, and the Python that runs it."""

from __future__ import annotations

import platform
import sys

from pyspark_paimon._version import HOME, __version__
from pyspark_paimon.request.message import Message


class ServerFacts(Message):
    """Of the process that answers: the driver's Python.

    ``shipped`` is the name of the zip that the package was imported from, None if it is installed. ``python`` is major and minor version, ``machine`` the operating
    system and the processor.
    """

    package: str
    shipped: str | None
    python: str
    machine: str


def server_facts() -> ServerFacts:
    """Those of this process.

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
