"""Streaming reads: options, positions and rows.

Public: ``follow``, ``TableStream`` (table_stream).
"""
