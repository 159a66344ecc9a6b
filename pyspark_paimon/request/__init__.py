"""Checked, frozen requests and the engine protocol.

Depends on schemas, not on an engine.
Public: ``Engine`` (engine), ``ScanRequest`` (requests), ``state``, ``scan_questions``, ``keys``, results.
"""
