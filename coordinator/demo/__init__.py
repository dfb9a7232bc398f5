"""The demo: equal against adaptive, with broker, coordinator and emulated boards as real processes here.

Everything lies in one folder and ends with the demo. Nothing here is used outside of it.
"""
