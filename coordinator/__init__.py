"""The coordinator: measures the boards, decides their shares, merges their models."""
