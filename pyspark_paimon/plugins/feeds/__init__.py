"""Messages of change data capture as batches of rows with kinds.

A format turns a message into changes, and ``batches`` turns changes into tables that ``Table.write`` takes.
Public: ``from_debezium`` (debezium), ``from_maxwell``, ``from_canal`` (mysql), ``ChangeBatch``, ``InvalidMessage`` (batches).
"""
