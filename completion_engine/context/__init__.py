"""Chooses the repository context of a prompt: snippets of other files, for one cursor.

Pure, except that callers pass a view of the repository. Does not depend on models, prompts and disks.
"""
