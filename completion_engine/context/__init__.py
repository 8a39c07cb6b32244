"""Chooses the repository context of a prompt: snippets of other files, for one cursor.

All functions are pure; callers pass a view of the repository.
"""
