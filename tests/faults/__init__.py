"""Faults as data: the effect of each on a typing window, and whether one window can delay another."""
