"""The metadata of record of a Paimon table: types, schemas, options, statistics, manifests, snapshots and the commit."""

try:
    from fileindex.siblings import check_siblings
except ImportError as error:
    raise ImportError("another distribution's package 'fileindex' shadows that of pyspark-paimon", name="fileindex") from error

check_siblings(__file__)
