"""One model of the whole table: random steps through the public API beside plain Python.

``tables`` draws a table, ``steps`` draws and does one operation, ``state`` says what the table must hold then, ``world`` compares.
``machine`` lets Hypothesis choose and shrink; ``python -m tests.torture --part model`` runs it for hours.
"""
