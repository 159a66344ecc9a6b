"""What is wrong with a data file that is read, said once for all formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from fileindex.base.errors import CorruptFile
from lsm.parquet.footer_promise import BrokenPromise
from lsm.parquet.row_group_pages import DAMAGE
from manifest.io.errors import OutOfMemory, StorageError, UnsupportedTable


@contextmanager
def decoding(path: str, file_format: str) -> Iterator[None]:
    """Whatever is wrong with a data file that is read in the block becomes an error that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptFile(path, "the data file is missing") from error
    except UnsupportedTable as error:
        if path in str(error):
            raise
        raise UnsupportedTable(f"{path}: {error}") from error
    except BrokenPromise as error:
        raise CorruptFile(path, str(error)) from error
    except MemoryError as error:  # Arrow's is one, too: the file may be whole
        raise OutOfMemory(path, str(error)) from error
    except (pa.ArrowException, OSError, *DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the storage's, not the decoder's
            raise StorageError(error.errno, error.strerror or "cannot be read", path) from error
        raise CorruptFile(path, f"is no readable {file_format} file ({error})") from error


__all__ = ["decoding"]
