"""Time series of the fleet: what is written, a spool on the disk before anything is sent, and who takes it.

It reads events and rows and decides nothing about a run; a server that is away costs a run nothing.
"""
