"""Table data of Paimon tables.

Buckets, sort buffer, sorted runs, compaction, scan planning and reading.
"""

import fileindex

if not hasattr(fileindex, "check_siblings"):  # another package shadows fileindex, so its check is missing
    raise ImportError(
        f"{fileindex.__file__ or fileindex.__path__} shadows the package 'fileindex' of pyspark-paimon: rename that file or folder if it "
        "is yours (or run from another directory); if another distribution brought it, install pyspark-paimon into a separate environment",
        name="fileindex",
    )
fileindex.check_siblings(__file__)
