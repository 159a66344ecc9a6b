"""Operations and questions of a table.

One module for each verb, one frozen model for each operation.
An operation is a request, a wire message and a log entry.
It can run on a table whose files this process reaches.
An engine runs it in this process, or sends its text to a server.
A ``TaskOperation`` is split into buckets or files. Threads or Spark tasks work on them.

Public: ``compact``, ``rewrite_file_index``, ``change_files``, ``alter``, ``expire``, ``analyze``, ``listings``.
"""
