"""The properties of each language: its names, its syntax, and the languages inside it.

Has no access to documents, parsers or editors.
"""
