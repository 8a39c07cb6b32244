"""The effect of a suggestion on everyday files: `python -m tests.quality.everyday`."""
