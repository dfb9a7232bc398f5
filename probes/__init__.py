"""Energy sensors, one file each, and the meter that makes joules of them. Imports nothing of ours."""
