"""Client side: send requests as questions and jobs.

Sends strings and DataFrames, never code. Public: ``SparkEngine`` (engine), ``spark_session`` (session).
"""
