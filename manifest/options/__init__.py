"""Table options: every key that we know, what it means here, and what is refused.

Public: ``CoreOptions`` (core_options), ``support``, ``known_keys``.
"""
