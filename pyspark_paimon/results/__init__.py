"""What calls return: frozen values that print as sentences and draw themselves in notebooks.

Public: ``Message``, ``Result`` (message), ``WriteResult`` (results), ``FsckResult`` (state_results), ``TreeReport`` (tree_report).
"""
