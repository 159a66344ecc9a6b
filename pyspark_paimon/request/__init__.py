"""Checked, frozen requests and the executor protocol.

Depends on schemas, not on an engine.
Public: ``Backend`` (executor), ``ScanRequest`` (backend), ``state``, ``scan_questions``, ``keys``, results.
"""
