"""Client side: send requests as questions and jobs.

Sends strings and DataFrames, never code. Public: ``SparkBackend`` (backend), ``spark_session`` (session).
"""
