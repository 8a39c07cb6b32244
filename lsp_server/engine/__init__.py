"""Engines on threads of their own: which there are, and what each works on next."""
