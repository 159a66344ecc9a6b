"""Driver side: parse options, answer questions, commit jobs once.

Public: ``outcome``, ``commit``, ``options``.
"""
