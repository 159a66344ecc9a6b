"""Conversion of schemas and values between Arrow, pandas and Spark.

Public: ``spark_schema`` (spark_types), ``spark_frame`` (pandas_frames).
"""
