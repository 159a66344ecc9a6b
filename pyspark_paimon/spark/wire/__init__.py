"""What travels between client and server: questions, jobs, rows, errors, all as text or Arrow.

Nothing is unpickled or evaluated. Public: ``rpc``, ``errors``, ``arrow_stream``.
"""
