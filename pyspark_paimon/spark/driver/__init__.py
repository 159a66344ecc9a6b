"""The driver's side: options parsed, questions answered, jobs committed once.

Public: ``commands``, ``commit``, ``options``.
"""
