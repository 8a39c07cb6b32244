"""Drafters: they guess the next tokens from text alone; the target decides."""
