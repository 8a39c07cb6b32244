"""Replays how a person types a file into a running server, and measures what the person would feel."""
