"""What of a repository stands in front of a prompt: snippets of other files, chosen for a place.

Pure but for a view of the repository that its callers hand over. Must not know models, prompts nor disks.
"""
