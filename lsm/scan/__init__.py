"""Scan planning: from a snapshot's manifests to splits.

Each pruning stage adds a line to the report. Opens no data file.
Public: ``ScanPlanner`` (planner), ``ScanPlan`` (plan), ``DataSplit`` (splits), ``HeldBucket`` (key_plan).
"""
