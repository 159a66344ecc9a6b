"""Tables of one to twenty row groups a file, crossed with formats, indexes, engines and changes of schema, beside a model of whole columns.

``python -m tests.torture --part scale`` draws cases for hours. ``case`` runs one, ``kinds`` draws tables, ``columns`` makes values,
``model`` holds the rows, ``questions`` draws filters. No Python runs per row.
"""
