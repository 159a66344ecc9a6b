"""Metadata of a Paimon table.

Types, schemas, options, statistics, manifests, snapshots and commits.
"""

import fileindex

if not hasattr(fileindex, "check_siblings"):  # another package: even the check is shadowed
    raise ImportError(
        f"{fileindex.__file__ or fileindex.__path__} shadows the package 'fileindex' of pyspark-paimon: rename that file or folder if it "
        "is yours (or run from another directory); if another distribution brought it, install pyspark-paimon into a separate environment",
        name="fileindex",
    )
fileindex.check_siblings(__file__)
