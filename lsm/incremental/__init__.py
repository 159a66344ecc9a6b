"""Changes between snapshots, and streams that follow a table.

A position always identifies the same rows. Public: ``IncrementalPlanner`` (planner), ``StreamScan`` (stream_scan).
"""
