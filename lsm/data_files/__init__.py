"""Writes of data files: statistics, indexes, rolling by size, spilling.

Public: ``RollingFileWriter`` (rolling), ``DataFileWriter`` (writer), ``SpillSpace`` (spill).
"""
