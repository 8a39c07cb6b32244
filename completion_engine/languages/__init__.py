"""What is known of each language: its names, its syntax, and the languages that it may hold.

Knows no document, no parser and no editor.
"""
