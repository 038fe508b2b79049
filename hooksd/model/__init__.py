"""What things are: events, hooks, replies, outcomes, and the pure rules that fold replies into an outcome.

Nothing here does I/O, reads a clock or knows a word of a dialect.
"""
