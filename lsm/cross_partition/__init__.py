"""Keys that do not include all partition columns.

Finds the partition of each key, moves its rows, and assigns buckets to new keys.
Public: ``CrossPartitionAssigner`` (assigner), ``locate_keys`` (key_locations), ``ArrivedRows`` (placement),
``StagedRows`` (staged_rows).
"""
