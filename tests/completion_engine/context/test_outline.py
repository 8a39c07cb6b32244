"""The definitions of a file, in every language of the outline."""

from __future__ import annotations

import pytest

from completion_engine.context.outline import MAX_BYTES, described, outline
from completion_engine.grammars import LANGUAGES, new_parser

PYTHON = '''
import os

LIMIT: int = 3

class Store(Base):
    """Keeps things, so many of them that the class is too long to be shown as it stands in its file."""

    size: int = 0

    @property
    def name(self) -> str:
        local = 1
        return "store" * 20

    def add(self, item: str) -> None:
        self.items = [*self.items, item]
        self.items = [item for item in self.items if item]
        self.items = [item for item in self.items if item != "nothing at all"]


def main(argv: list[str],
         count: int = 1) -> int:
    def inner():
        pass
    return 0
'''
TYPESCRIPT = """
import { x } from "./x";
export const limit = 3;
export const double = (n: number): number => { return 2 * n };
export interface Point { x: number; y: number }
export default class Store extends Base {
  size = 0;
  add(item: string): void { this.items.push(item); this.items = this.items.filter((it) => it !== "nothing"); }
  remove(item: string): boolean { return this.items.includes(item) && this.items.splice(0, 1).length > 0; }
  clear(): void { this.items = []; this.size = 0; this.callbacks.forEach((callback) => callback("cleared")); }
  first(): string { return this.items[0] ?? "nothing at all, which is a long text that fills the line"; }
}
"""
GO = """
package store

import "fmt"

const Limit = 3

type Store struct { items []string }

func (s *Store) Add(item string) error { return nil }

func New(size int) *Store { return &Store{} }
"""
RUST = """
use std::fmt;
pub const LIMIT: usize = 3;
pub struct Store { items: Vec<String> }
impl Store {
    pub fn add(&mut self, item: String) -> bool { self.items.push(item); true }
}
pub trait Named { fn name(&self) -> &str; }
"""
JAVA = """
package store;
public class Store {
    private int size;
    public void add(String item) { size += 1; }
    interface Named { String name(); }
}
"""
C = """
#ifndef STORE_H
#define STORE_H
#include "base.h"
#define LIMIT 3
typedef struct store { int size; } store_t;
int store_add(store_t *store, const char *item);
static int grow(store_t *store) { return store->size + 1; }
#endif
"""
CPP = """
namespace stores {
template <class T> T first(T item) { return item; }
class Store : public Base { public: int add(int item); };
}
"""

CASES = {
    "python": (PYTHON, """
LIMIT: LIMIT: int = 3
Store: class Store(Base):
size:     size: int = 0
name:     def name(self) -> str:
add:     def add(self, item: str) -> None:
main: def main(argv: list[str],
"""),
    "typescript": (TYPESCRIPT, """
limit: export const limit = 3
double: export const double = (n: number): number =>
Point: export interface Point { x: number; y: number }
Store: export default class Store extends Base
size:   size = 0
add:   add(item: string): void
remove:   remove(item: string): boolean
clear:   clear(): void
first:   first(): string
"""),
    "go": (GO, """
Limit: const Limit = 3
Store: type Store struct { items []string }
Add: func (s *Store) Add(item string) error
New: func New(size int) *Store
"""),
    "rust": (RUST, """
LIMIT: pub const LIMIT: usize = 3;
Store: pub struct Store { items: Vec<String> }
add:     pub fn add(&mut self, item: String) -> bool
Named: pub trait Named { fn name(&self) -> &str; }
"""),
    "java": (JAVA, """
Store: public class Store {
size:     private int size;
add:     public void add(String item)
Named:     interface Named { String name(); }
"""),
    "c": (C, """
LIMIT: #define LIMIT 3
store_t: typedef struct store { int size; } store_t;
store_add: int store_add(store_t *store, const char *item);
grow: static int grow(store_t *store)
"""),
    "cpp": (CPP, """
first: template <class T> T first(T item)
Store: class Store : public Base { public: int add(int item); }
"""),
}  # fmt: skip


@pytest.mark.parametrize("language", CASES)
def test_every_definition_is_found_with_what_its_users_need_to_see(language: str) -> None:
    source, expected = CASES[language]
    parser = new_parser(language)
    assert parser is not None
    found = [f"{it.name}: {it.signature.splitlines()[0]}" for it in outline(parser, source)]
    assert [line for line in expected.strip().split("\n") if line not in found] == []


def test_a_long_class_is_told_by_its_members() -> None:
    parser = new_parser("python")
    assert parser is not None
    definitions = outline(parser, PYTHON)
    place = next(at for at, it in enumerate(definitions) if it.name == "Store")
    told = described(definitions, place)
    assert told.split("\n") == [
        "class Store(Base):",
        "    size: int = 0",
        "    def name(self) -> str:",
        "    def add(self, item: str) -> None:",
    ]


HOSTILE = {
    "deep": "(" * 50_000,
    "long line": "x" * 200_000,
    "many": "def f(): pass\n" * 20_000,
    "nested": "".join(f"{'  ' * depth}class A{depth}:\n" for depth in range(200)),
    "no text": "",
    "surrogates": "def \ud800(): pass\n",
    "zero": "def f(): pass\n\0\0\0",
}


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("kind", HOSTILE)
def test_any_text_has_a_bounded_outline(language: str, kind: str) -> None:
    parser = new_parser(language)
    assert parser is not None
    definitions = outline(parser, HOSTILE[kind])
    assert len(definitions) <= 4_000
    assert all(len(it.signature) <= 401 for it in definitions)
    assert all(-1 <= it.owner < at for at, it in enumerate(definitions))
    assert sum(len(it.signature) for it in definitions) <= MAX_BYTES
