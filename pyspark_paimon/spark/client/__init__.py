"""The client's side: requests become questions and jobs of a session.

Sends strings and DataFrames, never code. Public: ``SparkBackend`` (backend), ``spark_session`` (session).
"""
