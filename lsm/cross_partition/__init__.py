"""Keys that do not hold all partition columns: where each lives, what becomes of its rows in other partitions, and room for new ones.

Public: ``CrossPartitionAssigner`` (assigner), ``check_key_partitions`` (check_keys), ``find_homes`` (key_homes), ``ArrivedRows`` (placement), ``WaitingRows`` (waiting_rows).
"""
