"""The distilled drafter: a small network trained to draft for one target."""
