"""The data of record of a Paimon table: buckets, sort buffer, sorted runs, compaction, scan planning and reading."""

try:
    from fileindex.siblings import check_siblings
except ImportError as error:
    raise ImportError("another distribution's package 'fileindex' shadows that of pyspark-paimon", name="fileindex") from error

check_siblings(__file__)
