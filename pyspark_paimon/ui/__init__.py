"""The page of a table's tree, served to this machine's browser: filters are planned as they are typed.

Public: ``TreeServer`` (server).
"""
