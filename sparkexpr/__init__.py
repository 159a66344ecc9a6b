"""Spark's ANSI expressions, casts and VARIANT values over Arrow arrays.

It knows neither tables nor files, and imports no other package of this distribution.
"""
