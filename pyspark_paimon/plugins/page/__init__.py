"""What notebooks and browsers show: cards, reports and the page of a table's tree.

Public: ``notebook``.
"""
