"""What a suggestion does to the files that people really write: `python -m tests.quality.everyday`."""
