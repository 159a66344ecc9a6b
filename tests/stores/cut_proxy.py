"""A proxy of TCP that loses answers: it hands a request on, waits until the server has answered, and cuts the connection instead."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Self

_CHUNK = 1 << 16


class CutProxy:
    """Cuts where ``rule`` says so of the bytes of a request. ``cuts`` counts what it did."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.rule: Callable[[bytes], bool] = lambda _: False
        self.cuts: Counter[str] = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                cut = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, cut), daemon=True).start()
                threading.Thread(target=self._answers, args=(client, server, cut), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if self.rule(data):
                    cut.set()
                server.sendall(data)
        _end(client, server)

    def _answers(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if cut.is_set():
                    self.cuts["answers"] += 1
                    break
                client.sendall(data)
        _end(client, server)


def _end(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


__all__ = ["CutProxy"]
