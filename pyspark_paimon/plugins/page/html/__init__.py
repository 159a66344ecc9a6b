"""HTML rendering with jinja2.

Every value is escaped, and a missing value is an error. This package does not know tables.
Public: ``template_environment`` (render), ``card``.
"""
