"""A small library's lending desk."""
