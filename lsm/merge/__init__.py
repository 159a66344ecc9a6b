"""Merge engines and the merge of sorted runs.

Versions of a key are adjacent rows; a fold is a mask or a reduction over these groups. This package knows rows and keys, not files or levels.
Only ``engines`` maps a table to its merge function. Public: ``merge_function_for`` (engines), ``merge_iterator``, ``selection``.
"""
