"""Training of a target's own small drafter: code in, a folder with a drafter out."""
