"""Torture: the engine is killed, its disk fails, processes race, files rot, random steps run beside a model; afterwards the rows are right or the error is typed.

``python -m tests.torture --minutes 30`` runs all parts and prints what it found; ``make torture MINUTES=30`` is the same. A part is a module:
``outcomes(seed, folder)`` yields an ``Outcome`` per try, endlessly and the same again for the same seed; ``replay(folder)`` runs one
try again, from the ``case.json`` in the folder that it left.
"""
