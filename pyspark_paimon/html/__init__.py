"""HTML by jinja2: every value is escaped, and what a template does not get is an error. Knows nothing of tables.

Public: ``templates_of`` (render), ``card``.
"""
