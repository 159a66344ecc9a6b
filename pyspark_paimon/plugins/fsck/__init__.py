"""Check of a table's metadata and files, and the repair of what it finds.

Public: ``Fsck`` (operation), ``repair_table`` (repair_operation), ``walk`` (walk), ``FileCheck`` (check_file).
"""
