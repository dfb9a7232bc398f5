"""Setting a board up and taking it down again: releases below /opt/edged, settings, units, accounts, sensors.

Standard library and msgspec only. All of it goes through a `Machine`, so that an image (`--root`) and a dry
run are the same steps. Every step may be repeated: running it again is an upgrade or a repair.
"""
