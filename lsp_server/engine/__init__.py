"""Engines on their own threads: which exist, and what each works on next."""
