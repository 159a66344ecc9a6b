"""HTML pages and pictures of a table's tree.

Templates are in the folder ``templates``. All values are escaped, and pages load nothing. This package knows ``TreeReport``,
not how it is made.
Public: ``render_page`` (page), ``render_live`` (page), ``render_scan_plan`` (plan_picture).
"""
