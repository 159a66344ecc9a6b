"""Operations on the history of a table.

Public: ``CreateTag`` (tags), ``CreateBranch`` (branches), ``Rollback`` (rollback), ``Restore`` (restore), ``ResetConsumer`` (consumers).
"""
