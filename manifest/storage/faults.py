"""Failures of store requests: retries, or typed errors without secrets.

The client library's own retries are off for whole requests, because they are silent: neither throttling nor lost answers would be
visible. Retries of this module wait longer each time, with a random part, and are logged and counted. A throttling store may request a wait
(``Retry-After``), which the client library does not report. So the first wait is then the header's minimum, one second.
"""

from __future__ import annotations

import errno
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from manifest.io.errors import CredentialsRefused, FileMissing, StorageDenied, StorageError
from paimon_base.log import logger_of
from paimon_base.redaction import HIDDEN, redact

_LOG = logger_of(__name__)
T = TypeVar("T")
RETRIED: Counter[str] = Counter()
"""Number of retries of this process, by request and failure."""

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_LONGER_FIRST, _LONGER_LAST = 10, 4
"""Factors of the waits for a throttling store: from 1 to 20 seconds."""
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_MESSAGE = re.compile(r"<Message>([^<\n]{1,200})")
_NOT_IMPLEMENTED = 501
"""The store does not support the operation or its condition."""
_AGAIN = frozenset({408, 425, 429})
_CREDENTIALS = frozenset(
    {
        "AccessDenied:token",
        "AuthenticationFailed",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
_UNSENT = "builder error"
"""Message of the client library for a request that it refuses to send, such as an unencrypted one without permission."""
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_THROTTLES = frozenset({"ServerBusy", "ServiceUnavailable", "SlowDown", "ThrottlingException", "TooManyRequests"})
_BUSY = _THROTTLES | {"InternalError", "RequestTimeout"}


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed request.

    Args:
        reason: Readable reason, without secrets.
        status: HTTP status. None: no answer.
        code: Error code of the store. Empty: none.
    """

    reason: str
    status: int | None
    code: str

    @property
    def may_pass(self) -> bool:
        """Whether a retry may succeed."""
        if self.reason == _UNSENT or self.status == _NOT_IMPLEMENTED:
            return False
        return self.status is None or self.status >= 500 or self.status in _AGAIN or self.code in _BUSY

    def wait_seconds(self, attempt: int) -> float:
        """Return the wait after attempt ``attempt`` (from 0).

        Doubles each time up to a bound, with a random part.
        """
        throttles = self.status in {429, 503} or self.code in _THROTTLES
        first, longest = (_FIRST_WAIT * _LONGER_FIRST, _LONGEST_WAIT * _LONGER_LAST) if throttles else (_FIRST_WAIT, _LONGEST_WAIT)
        part = random.uniform(1.0, 1.5) if throttles else random.uniform(0.5, 1.2)  # noqa: S311  # not a secret
        return min(first * 2.0**attempt, longest) * part

    def error(self, path: str, kind: str) -> StorageError:
        """Return the typed error.

        ``kind`` is the name of the client library's error.
        """
        if self.code in _CREDENTIALS or kind == "UnauthenticatedError":
            advice = "; this machine's clock is wrong" if self.code == "RequestTimeTooSkewed" else ""
            return CredentialsRefused(errno.EACCES, f"the store rejects these credentials ({self.reason}){advice}", path)
        if kind == "PermissionDeniedError" or self.status == 403:
            return StorageDenied(errno.EACCES, f"the store refuses ({self.reason})", path)
        if self.status == 404:
            return FileMissing(errno.ENOENT, f"there is no such bucket or container ({self.reason})", path)
        if self.status == _NOT_IMPLEMENTED:
            return StorageError(errno.ENOSYS, f"the store cannot do that ({self.reason})", path)
        return StorageError(errno.EIO, f"the store failed ({self.reason})", path)


@dataclass(frozen=True, slots=True)
class Retries:
    """Retry policy of requests.

    Args:
        max_retries: Maximal number of retries.
        secrets: Texts that messages must not contain.
        wait: Waits for a number of seconds.
    """

    max_retries: int
    secrets: tuple[str, ...] = field(default=(), repr=False)
    wait: Callable[[float], None] = time.sleep

    def call(self, what: str, path: str, request: Callable[[], T]) -> T:
        """Return the result of ``request`` after at most ``max_retries`` retries.

        Raises ``StorageError`` and its subclasses. The library's ``FileExistsError`` is not converted.
        """
        for attempt in range(self.max_retries + 1):
            try:
                return request()
            except FileNotFoundError as error:
                if not _is_of_library(error):
                    raise
                fault = self.fault(error)
                if fault.code in _NO_BUCKET:
                    raise fault.error(path, "") from None
                raise FileMissing(errno.ENOENT, "there is no such object", path) from None
            except Exception as error:
                if not _is_of_library(error) or type(error).__name__ in {"AlreadyExistsError", "PreconditionError", "NotSupportedError"}:
                    raise
                fault = self.fault(error)
                if type(error).__name__ != "GenericError" or not fault.may_pass or attempt == self.max_retries:
                    raise fault.error(path, type(error).__name__) from None
                seconds = fault.wait_seconds(attempt)
                RETRIED[f"{what}: {fault.status or 'no answer'} {fault.code}".strip()] += 1
                _LOG.warning("%s: %s failed (%s); retrying in %.1f s, attempt %d", redact(path), what, fault.reason, seconds, attempt + 2)
                self.wait(seconds)
        raise AssertionError("every attempt returns or raises")

    def fault(self, error: BaseException) -> Fault:
        """Parse a library error, without response body and secrets."""
        text = str(error).partition("\n\nDebug source:")[0]
        status, code, message = _STATUS.search(text), _CODE.search(text), _MESSAGE.search(text)
        if code or status:
            words = [status[1] if status else "", code[1] if code else "", message[1] if message else ""]
            reason = " ".join(filter(None, words))
        else:
            reason = text.rpartition(": ")[2][:200] or type(error).__name__
        for secret in self.secrets:
            reason = reason.replace(secret, HIDDEN)
        return Fault(redact(reason), int(status[1]) if status else None, code[1] if code else "")


def unfit_reason(error: BaseException) -> str:
    """Return why the client library rejects a configuration.

    Without the value: text after the first clause may quote a key.
    """
    clauses = str(error).partition("\n")[0].split(": ")
    return redact(" ".join(clauses[1:2] or clauses[:1])[:100])


def _is_of_library(error: BaseException) -> bool:
    """Return whether the client library raised the error."""
    # Its "not found" error is the builtin one.
    return type(error).__module__.startswith("obstore") or (isinstance(error, FileNotFoundError) and "Debug source" in str(error))
