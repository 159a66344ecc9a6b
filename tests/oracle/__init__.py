"""One oracle for features that cross: random tables, the whole grammar of filters, every kind of question, one model.

The model is plain Python and shares no code with the product. ``cases.py`` draws a case and shrinks it, ``planted.py`` lists faults that
the oracle must find.
"""
