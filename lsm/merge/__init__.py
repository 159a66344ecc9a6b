"""Merge engines and the merge of sorted runs: versions of a key are neighbours, and a fold is a mask or a reduction over groups.

Knows rows and keys; not files, not levels. Which engine a table has is decided in ``engines`` alone. Public:
``merge_function_for`` (engines), ``merge_iterator``, ``selection``.
"""
