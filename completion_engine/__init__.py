"""Verified completions from a local model: text and limits in, verified text out."""
