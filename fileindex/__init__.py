"""File indexes: built from Arrow columns, kept as bytes, asked by predicates. The ground floor: knows no files and no tables."""

from fileindex.siblings import check_siblings

check_siblings(__file__)

__all__ = ["check_siblings"]
