"""What is done to a table or asked of it: one module for each verb, one frozen model for each operation.

An operation is request, wire message and log entry in one. It knows how to run on a table whose files this process reaches. It does
not know where it runs: an executor runs it here, or sends its text to a server. A ``TaskOperation`` is cut into buckets or files,
which threads or Spark's tasks work on.

Public: ``compact``, ``rewrite_file_index``, ``change_files``, ``tags``, ``branches``, ``rollback``, ``restore``, ``alter``, ``expire``, ``analyze``, ``listings``.
"""
