"""The end of a suggestion: the written text that is shown, and the part of the document that it replaces.

`Cutter` is the only interface. While the target writes, `stop` ends a text early; then `cut` decides once, as
a function of the text and the document. Does not depend on tokens, targets or servers.
"""
