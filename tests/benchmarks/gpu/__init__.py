"""How near the engine comes to what a GPU can do, and how it compares with other ways to run a model.

Every part also runs on a CPU with tiny models, to be tried out; figures mean something on a GPU only.
"""
