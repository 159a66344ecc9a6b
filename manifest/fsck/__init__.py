"""The metadata's part of a table check: walks over every state and says what is wrong with it.

Gives out each data file once, to be checked by ``lsm.fsck``. Public: ``walk``, ``repair``, ``Problem`` (problem).
"""
