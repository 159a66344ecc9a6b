"""The tests' REST catalog as a server of ``python -m tests.stores``: tables are files of its own folder, for as long as it is held."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

from tests.catalogs.server import CatalogServer
from tests.stores.local_server import CATALOG, LocalServer


@dataclass
class RestServer(LocalServer):
    """A running catalog; ``port`` of 127.0.0.1."""

    name = "a REST catalog"
    _stack: ExitStack = field(default_factory=ExitStack, repr=False)
    _options: dict[str, str] = field(default_factory=dict, repr=False)

    def __enter__(self) -> Self:
        self._make_folder("rest")
        server = self._stack.enter_context(CatalogServer(self.folder / "tables"))
        self.port, self._options = server.port, server.options()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        super().__exit__()

    def options(self) -> dict[str, str]:
        """Options of a catalog, its warehouse included."""
        return self._options

    def environment(self) -> dict[str, str]:
        """Variables by which a process reaches it."""
        options = self.options()
        named = {f"CATALOG_{name.upper()}": options[name] for name in ("uri", "warehouse", "token")}
        return {CATALOG: json.dumps(options), **named}


__all__ = ["RestServer"]
