"""Planning a scan: one funnel from a snapshot's manifests to splits, each stage with a line in the report.

Opens no data file. Public: ``ScanPlanner`` (planner), ``ScanPlan`` (plan), ``DataSplit`` (splits).
"""
