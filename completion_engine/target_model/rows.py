"""How many rows a pass runs. Numbers only: ground that everything above may stand on."""

ROWS = 8  # what torch's own products and attention need a multiple of; the width of a fixed-width pass


def pad_rows(num_rows: int, row_step: int = ROWS) -> int:
    """Rows a pass really runs. Fewer than a full group would take other kernels of torch, with other sums."""
    return -(-num_rows // row_step) * row_step
