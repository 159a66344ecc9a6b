"""What a user asked for, checked and frozen, and the protocol of those who carry it out.

Knows schemas; not how it is done. Public: ``Backend`` (executor), ``ScanRequest`` (backend), ``state``, ``scan_questions``, ``keys``, results.
"""
