"""What a server has: the package, where it lies, and the Python that runs it."""

from __future__ import annotations

import platform
import sys
from pathlib import PurePath

import pyspark_paimon
from pyspark_paimon.request.results import Message


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

    >>> server_facts().package == pyspark_paimon.__version__
    True
    """
    home = PurePath(pyspark_paimon.__file__).parent.parent
    return ServerFacts(
        package=pyspark_paimon.__version__,
        shipped=home.name if home.suffix == ".zip" else None,
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        machine=f"{platform.system()} {platform.machine()}",
    )


__all__ = ["ServerFacts", "server_facts"]
