"""Streams: options, positions and rows of a table that is followed.

Public: ``follow``, ``TableStream`` (table_stream).
"""
