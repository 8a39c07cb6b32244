"""Ends a suggestion, and fits it to the document.

`Cutter` is the only interface. While the target writes, `stop` ends a text early; then `cut` decides once, as
a function of the text and the document. Does not depend on tokens, targets or servers.
"""
