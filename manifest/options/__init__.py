"""Table options: known keys, their effect, and refused values.

Public: ``CoreOptions`` (core_options), ``support``, ``known_keys``.
"""
