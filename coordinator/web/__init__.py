"""The live page and its JSON API, on a thread of its own: it reads the store and what the loop tells it.

A change goes into the loop's queue like any operator's request; a slow reader is dropped, never waited for.
"""
