"""Changes instead of states: what lies between two snapshots, and streams that follow a table.

A position means the same rows for ever. Public: ``IncrementalPlanner`` (planner), ``StreamScan`` (stream_scan).
"""
