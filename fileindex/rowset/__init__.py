"""Sets of row positions: Roaring bitmaps in bulk, bit-sliced comparison, and what an index may answer.

Knows positions only; not values, not files. Public: ``result``, ``roaring``, ``bit_sliced``.
"""
