"""Input of Arrow's CSV reader."""

from __future__ import annotations

from typing import Any

_RETURN = b"\r"


class CsvSource:
    r"""Stream whose reads end between line breaks, never inside of one.

    Arrow drops the line feed of a CRLF that lies on two blocks, also inside of quotes.

    >>> import io
    >>> source = CsvSource(io.BytesIO(b"ab\r\nc"))
    >>> source.read(3), source.read(3), source.read(3)
    (b'ab', b'\r\nc', b'')
    """

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest = stream, b""

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes. -1: all."""
        data = self._rest + bytes(self._stream.read() if size < 0 else self._stream.read(max(1, size - len(self._rest))))
        holds_back = len(data) > 1 and data.endswith(_RETURN) and size >= 0
        self._rest = _RETURN if holds_back else b""
        return data[:-1] if holds_back else data

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
