"""Driver side: parse options, answer questions, commit jobs once.

Public: ``commands``, ``commit``, ``options``.
"""
