"""Messages between client and server: questions, jobs, rows and errors.

All are JSON or Arrow. Nothing is unpickled or evaluated. Public: ``rpc``, ``errors``, ``arrow_stream``.
"""
