"""Where a suggestion ends: how much of the written text is shown, and how much of the document it replaces.

`Cutter` is the only interface. While the target writes, `stop` ends a text early; then `cut` decides once, as
a function of the text and the document. Does not depend on tokens, targets or servers.
"""
