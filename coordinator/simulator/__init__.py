"""Virtual boards under virtual time, with the very `rounds` and `controller` of the real coordinator."""
