"""Secondary indexes of a snapshot: which payloads count, and what they answer.

A payload is advice: one that is damaged, unknown or stale selects no rows, and is counted.
Public: ``live_payloads`` (payloads), ``ask_indexes`` (answers), ``IndexSelection`` (selection).
"""
