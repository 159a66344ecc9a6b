"""In-process engine: threads over buckets and files.

Arrow in and out. Starts no JVM. Public: ``LocalEngine`` (engine).
"""
