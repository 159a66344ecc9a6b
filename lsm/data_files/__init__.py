"""Writing data files: statistics, indexes, rolling by size, and spilling to disk.

Public: ``RollingFileWriter`` (rolling), ``DataFileWriter`` (writer), ``SpillSpace`` (spill).
"""
