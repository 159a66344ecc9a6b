"""What is wrong with a data file that is read, said once for all formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from fileindex.base.errors import CorruptFile
from lsm.parquet.footer_promise import BrokenPromise
from lsm.parquet.row_group_pages import DAMAGE
from manifest.io.errors import OutOfMemory, OutOfThreads, StorageError, UnsupportedTable
from manifest.io.storage_errors import is_out_of_memory

_NO_THREAD = "Failed to launch worker thread"
"""What Arrow says where its pool cannot have a first thread."""


@contextmanager
def decoding(path: str, file_format: str) -> Iterator[None]:
    """Whatever is wrong with a data file that is read in the block becomes an error that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptFile(path, "the data file is missing") from error
    except StorageError:
        raise
    except UnsupportedTable as error:
        if path in str(error):
            raise
        raise UnsupportedTable(f"{path}: {error}") from error
    except BrokenPromise as error:
        raise CorruptFile(path, str(error)) from error
    except (MemoryError, pa.ArrowException, OSError, *DAMAGE) as error:
        if is_out_of_memory(error):  # the file may be whole
            raise OutOfMemory(path, str(error)) from error
        if _NO_THREAD in str(error):
            raise OutOfThreads from error
        if isinstance(error, OSError) and error.errno is not None:  # the storage's, not the decoder's
            raise StorageError(error.errno, error.strerror or "cannot be read", path) from error
        raise CorruptFile(path, f"is no readable {file_format} file ({error})") from error


__all__ = ["decoding"]
