"""Faults as data: what each does to a window that types, and whether one window can hold up another."""
