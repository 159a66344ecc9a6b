"""Sets of row positions.

Roaring bitmaps in bulk, bit-sliced comparison, and the results of index queries. Knows only positions, neither values nor files.
Public: ``result``, ``roaring``, ``bit_sliced``.
"""
