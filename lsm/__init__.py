"""Table data of Paimon tables.

Buckets, sort buffer, sorted runs, compaction, scan planning and reading.
"""

from paimon_base.siblings import check_siblings

check_siblings(__file__)
