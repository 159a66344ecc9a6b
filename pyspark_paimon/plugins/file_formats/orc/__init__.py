"""ORC data files.

The file's tail is checked before the decoder reads it. Stripes are decoded, and stripe statistics become bounds.
Input and output are Arrow; this package does not know tables. Public: ``OrcDataFile`` (reader), ``OrcTail`` (tail).
"""
