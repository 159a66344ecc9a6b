"""Metadata of a Paimon table.

Types, schemas, options, statistics, manifests, snapshots and commits.
"""

from paimon_base.siblings import check_siblings

check_siblings(__file__)
