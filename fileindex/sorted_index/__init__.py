"""Payloads of secondary indexes on primary-key tables: B-tree and bitmap, from value to row ordinals.

An ordinal is the number of a row in the files that a payload covers. The folder knows values, ordinals and bytes, neither files nor
snapshots. Public: ``SourceMeta``, ``SourceFile`` and ``SortedIndexMeta`` (index_meta), ``SortedIndexOptions`` and ``SortedIndexKind``
(build_options), ``supports`` (key_codec), ``sort_rows`` (sorted_rows), ``sorted_index_writer`` and ``open_sorted_index`` (kinds).
"""
