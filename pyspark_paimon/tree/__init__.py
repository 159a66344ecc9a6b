"""What a table's tree looks like: levels, key ranges, sections, what snapshots brought, what its indexes are worth. Computed from metadata.

Knows no HTML. Public: ``tree_report`` (assemble), ``bucket_trees`` (buckets).
"""
