"""The arguments of kernels: the writer and the reader of a task use the names of one declaration."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from completion_engine.cpu.kernels import attention, heads, language, product, program, rounded, rows
from completion_engine.cpu.kernels.heads import HeadNorms, Heads
from completion_engine.cpu.kernels.packing import pack
from completion_engine.cpu.kernels.program import (
    BRANCH,
    BRANCH_SIZE,
    FIRST_BRANCH,
    NUM_BRANCHES,
    BranchFields,
    BranchTable,
    Step,
    TableBranch,
)
from completion_engine.cpu.kernels.rounded import RoundedRows

KERNELS = sorted(Path(language.__file__).parent.glob("*.py"))
READ_BY_NAME = {"task", "table", "steps", "shape"}  # the kernels' names for their arguments
TASKS = (
    attention.AttentionTask,
    heads.PlaceTask,
    heads.SplitTask,
    product.ProductTask,
    program.RunTask,
    rounded.GateTask,
    rounded.NormTask,
    rounded.RoundTask,
)
RECORDS = (BranchFields, program.StepFields, rows.GroupShape)  # rows of numbers without a counter before them
NUM_ROWS, NUM_HEADS, NUM_KV, SIZE, NUM_POSITIONS, EPS = 3, 4, 2, 16, 40, 1e-5


def numbers(*shape: int) -> Tensor:
    return torch.zeros(*shape)


def named(step: Step, declaration: Any) -> dict[str, int]:
    """The value that a kernel reads under each name."""
    at = language.places(declaration)
    assert len(step.task) == language.FIRST_FIELD + len(at)
    return {name: int(step.task[getattr(at, name)]) for name in declaration._fields}


def bits(number: float) -> int:
    return int(np.float32(number).view(np.int32))


@pytest.mark.parametrize("declaration", TASKS, ids=lambda found: found.__name__)
def test_what_is_filled_in_under_a_name_is_read_under_it(declaration: Any) -> None:
    values = {name: 100 + number for number, name in enumerate(reversed(declaration._fields))}
    filled, at = language.task_of(declaration(**values)), language.places(declaration)
    assert filled[language.COUNTER] == 0
    assert language.COUNTER not in at
    assert {name: filled[getattr(at, name)] for name in values} == values


@pytest.mark.parametrize("declaration", RECORDS, ids=lambda found: found.__name__)
def test_so_are_the_rows_of_a_table(declaration: Any) -> None:
    values = {name: 100 + number for number, name in enumerate(reversed(declaration._fields))}
    filled, at = np.array(declaration(**values)), language.places(declaration, 0)
    assert {name: filled[getattr(at, name)] for name in values} == values


@pytest.mark.parametrize("source", KERNELS, ids=lambda path: path.stem)
def test_no_kernel_reads_by_number(source: Path) -> None:
    found = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in READ_BY_NAME
        and any(isinstance(part, ast.Constant) and part.value != 0 for part in ast.walk(node.slice))
    ]
    assert not found


def test_a_table_holds_its_branches_by_name() -> None:
    path, table = np.array([0, 2], np.int64), BranchTable(3)
    branches = [TableBranch(0, 2, 11, 12, 13, path), TableBranch(2, 1, 21, 22, 23, path[:1])]
    table.fill(branches)
    assert table.numbers[NUM_BRANCHES] == 2
    for number, branch in enumerate(branches):
        begin = FIRST_BRANCH + number * BRANCH_SIZE
        held = {name: table.numbers[begin + getattr(BRANCH, name)] for name in BranchFields._fields}
        told = {name: getattr(branch, name) for name in ("first", "number", "keys", "values", "start")}
        assert held == {**told, "path": path.ctypes.data, "num_path": len(branch.path)}


def test_attention_is_told_what_it_reads() -> None:
    table, num_seen = BranchTable(NUM_ROWS), torch.zeros(NUM_ROWS, dtype=torch.int64)
    q, found = numbers(NUM_ROWS, NUM_HEADS, SIZE), numbers(NUM_ROWS, NUM_HEADS, SIZE)
    strides = attention.Strides(key_head=101, key_channel=102, value_head=103, value=104)
    step = attention.step_in(table, attention.Queries(q, found, num_seen, 0.25), NUM_KV, strides, (105, 106))
    assert named(step, attention.AttentionTask) == {
        "table": table.address,
        "q": q.data_ptr(),
        "found": found.data_ptr(),
        "num_seen": num_seen.data_ptr(),
        "num_rows": NUM_ROWS,
        "num_heads": NUM_HEADS,
        "head_size": SIZE,
        "num_kv_heads": NUM_KV,
        "key_head_stride": 101,
        "key_channel_stride": 102,
        "value_head_stride": 103,
        "value_stride": 104,
        "keys_offset": 105,
        "values_offset": 106,
        "scale_bits": bits(0.25),
    }


def split_heads() -> Heads:
    q = numbers(NUM_ROWS, NUM_HEADS, SIZE)
    k, v = (numbers(NUM_KV, NUM_ROWS, SIZE) for _ in range(2))
    cos, sin = (numbers(NUM_POSITIONS, SIZE) for _ in range(2))
    return Heads(q, k, v, cos, sin, torch.zeros(NUM_ROWS, dtype=torch.int64))


@pytest.mark.parametrize("has_norms", [True, False])
def test_splitting_heads_is_told_what_it_reads(has_norms: bool) -> None:
    into, qkv = split_heads(), numbers(NUM_ROWS, 150)
    norms = HeadNorms(np.ones(SIZE, np.float32), np.ones(SIZE, np.float32)) if has_norms else None
    assert named(heads.split_step(qkv, into, norms, EPS), heads.SplitTask) == {
        "num_rows": NUM_ROWS,
        "num_heads": NUM_HEADS,
        "num_kv_heads": NUM_KV,
        "head_size": SIZE,
        "qkv_width": 150,
        "num_positions": NUM_POSITIONS,
        "qkv": qkv.data_ptr(),
        **{name: getattr(into, name).data_ptr() for name in Heads._fields},
        "q_norm": norms.q.ctypes.data if norms else 0,
        "k_norm": norms.k.ctypes.data if norms else 0,
        "eps_bits": bits(EPS),
    }


def test_writing_to_a_cache_is_told_what_it_reads() -> None:
    table, split = BranchTable(1), split_heads()
    assert named(heads.place_step(table, split, (64, 62), (7, 9)), heads.PlaceTask) == {
        "table": table.address,
        "num_kv_heads": NUM_KV,
        "num_rows": NUM_ROWS,
        "head_size": SIZE,
        "keys_room": 64,
        "values_room": 62,
        "keys_offset": 7,
        "values_offset": 9,
        "k": split.k.data_ptr(),
        "v": split.v.data_ptr(),
    }


def where(found: RoundedRows) -> dict[str, int]:
    """Rows go there, and are divided so."""
    memory, shape = found.parts
    return {"num_rows": found.num_rows, "memory": memory.ctypes.data, "shape": shape.ctypes.data}


def test_rounding_is_told_what_it_reads() -> None:
    found = RoundedRows(NUM_ROWS, 64)
    x, added, gate_up = numbers(NUM_ROWS, 64), numbers(NUM_ROWS, 80), numbers(NUM_ROWS, 144)
    weight = np.ones(64, np.float32)
    assert named(rounded.of_numbers(x, found), rounded.RoundTask) == {
        "num_inputs": 64, "x": x.data_ptr(), **where(found),
    }  # fmt: skip
    assert named(rounded.of_gate(gate_up, 64, found), rounded.GateTask) == {
        "num_outputs": 64, "gate_up_width": 144, "gate_up": gate_up.data_ptr(), **where(found),
    }  # fmt: skip
    assert named(rounded.of_norm(x, added, weight, EPS, found), rounded.NormTask) == {
        "hidden_size": 64, "added_width": 80, "x": x.data_ptr(), "added": added.data_ptr(),
        "weight": weight.ctypes.data, "eps_bits": bits(EPS), **where(found),
    }  # fmt: skip


def test_rows_are_divided_by_name() -> None:
    shape = rounded.groups_of(21, num_blocks=5).shape
    at = language.places(rows.GroupShape, 0)
    found = {name: int(shape[getattr(at, name)]) for name in rows.GroupShape._fields}
    assert found == {"num_blocks": 5, "group_size": 16, "num_before_last": 16, "last_size": 8}


def test_a_product_is_told_what_it_reads() -> None:
    weight, found = pack(np.ones((40, 96), np.float32)), RoundedRows(21, 96)
    bias, outputs = np.zeros(48, np.float32), numbers(24, 48)
    step = product.Product(weight, bias, instruction_set=0).step(found, outputs)
    assert named(step, product.ProductTask) == {
        "weights": weight.records.ctypes.data,
        "units": weight.units.ctypes.data,
        "bias": bias.ctypes.data,
        "num_tiles": 3,
        "num_blocks": 3,
        "num_tiles_at_once": (1 << 17) // (3 * weight.record.num_bytes),
        "rows": found.address,
        "lanes": found.lanes_address,
        "outputs": outputs.data_ptr(),
        "num_groups": 2,
        "group_size": 16,
        "last_group_size": 8,
    }
