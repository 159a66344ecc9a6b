"""How much a decoded batch may hold: with the number of batches at a time it bounds the memory of a read."""

from __future__ import annotations

DECODED_BATCH_BYTES = 16 * 1024 * 1024
"""About as many decoded bytes as a batch may have; the bound of a reader's memory, together with MAX_BATCH_ROWS."""
MAX_BATCH_ROWS = 128 * 1024

__all__ = ["DECODED_BATCH_BYTES", "MAX_BATCH_ROWS"]
