"""What is done to a table or asked of it: one module for each verb, one frozen model for each operation.

An operation is request, wire message and log entry in one. It knows how to run on a table whose files this process reaches. It does
not know where it runs: an executor runs it here, or sends its text to a server.

Public: ``tags``, ``branches``, ``rollback``, ``restore``, ``alter``, ``expire``, ``analyze``, ``listings``, ``state``.
"""
