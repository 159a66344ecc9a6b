"""ORC data files: the file's tail looked through before the decoder sees it, stripes decoded, stripe statistics as bounds.

Knows Arrow in and out; not tables. Public: ``OrcDataFile`` (reader), ``OrcTail`` (tail).
"""
