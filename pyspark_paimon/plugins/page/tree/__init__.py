"""Report of a table's LSM tree, computed from metadata.

It has levels, key ranges, sections, history and index health. This package does not know HTML.
Public: ``tree_report`` (assemble), ``bucket_trees`` (buckets).
"""
