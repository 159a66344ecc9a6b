"""Bloom, bitmap and range file indexes built from Arrow columns.

The lowest layer: indexes are bytes, queried by predicates. It knows no files and no tables.
"""

from paimon_base.siblings import check_siblings

check_siblings(__file__)
