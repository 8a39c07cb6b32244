"""Stories of the next edit: the changes by hand, and those by Tab alone after them.

Each is a file before, keys of Neovim's normal mode, and the file at the end. In the stories of `SILENT`
nothing may be proposed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Story:
    """`keys` are pressed in normal mode, `after` is the file when no further edit is proposed.

    If the user `asks`, none is proposed before.
    """

    name: str
    file: str
    before: str
    keys: str
    after: str
    asks: bool = False


def _renamed(name: str, file: str, before: str, keys: str, *words: tuple[str, str]) -> Story:
    after = before
    for old, new in words:
        after = after.replace(old, new)
    return Story(name, file, before, keys, after)


_LOADER = """def load(path):
    handle = open(path)
    data = handle.read()
    handle.close()
    return data
"""
_LOGGING = """import logging

log = logging.getLogger(__name__)


def run(steps):
    log.info("begin")
    for step in steps:
        log.info("step")
        step()
    log.info("end")
"""
_PRINTS = """def main(paths):
    print("starting")
    for path in paths:
        print(f"reading {path}")
        data = read(path)
        print(f"read {len(data)} bytes")
        save(data)
        print("saved")
    print("done")
"""
_CONSOLE = """export function run(steps) {
  console.log("begin");
  for (const step of steps) {
    console.log(step.name);
    step.run();
    console.log("ran", step.name);
  }
  console.log("end");
}
"""
_SQL = """SELECT name FROM users WHERE id = 1;
SELECT email FROM users WHERE id = 1;
SELECT phone FROM users WHERE id = 1;
"""
_SHELL = """cp build/app $HOME/bin/app
cp build/tool $HOME/bin/tool
cp build/check $HOME/bin/check
"""
_HTML = """<ul>
  <li class="item">One</li>
  <li class="item">Two</li>
  <li class="item">Three</li>
</ul>
"""
_JS = """var first = read("a.txt");
var second = read("b.txt");
var third = read("c.txt");
"""
_MARKDOWN = """Run `slip serve` to start the server.
Run `slip doctor` to check the machine.
Run `slip models` to list the models.
"""
_ASYNC = """async def load(client):
    users = client.get("/users")
    orders = client.get("/orders")
    items = client.get("/items")
    return users, orders, items
"""

_PYTHON_CALLS = """def load(path):
    return open(path).read()


first = load("a.txt")
second = load("b.txt")
print(load("c.txt"), first, second)
"""
_PARAMETER = """export function area(w: number, scale: number): number {
  const wide = w * scale;
  if (w < 0) {
    return 0;
  }
  return wide * w;
}
"""
_METHOD = """class Store:
    def put(self, key):
        self.keys.append(key)

    def put_twice(self, key):
        self.put(key)
        self.put(key)
"""
_ATTRIBUTE = """class Clock:
    def __init__(self):
        self.now = 0

    def tick(self):
        self.now += 1
        return self.now
"""
_GO = """package shapes

type Point struct {
\tX, Y int
}

func New(x, y int) Point {
\treturn Point{x, y}
}

func Move(p Point, x int) Point {
\tp.X += x
\treturn p
}
"""
_RUST = """const LIMIT: usize = 8;

fn first(values: &[u8]) -> &[u8] {
    &values[..LIMIT]
}

fn rest(values: &[u8]) -> &[u8] {
    &values[LIMIT..]
}
"""
_JAVA = """class Sums {
    private int add(int a, int b) { return a + b; }

    int three(int a, int b, int c) {
        return add(add(a, b), c);
    }

    int twice(int a) { return this.add(a, a); }
}
"""
_TYPES = """def width(box) -> int:
    return box.right - box.left


def height(box) -> int:
    return box.bottom - box.top


def area(box) -> int:
    return width(box) * height(box)


def edge(box) -> int:
    return 2 * (width(box) + height(box))
"""
_DERIVES = """#[derive(Debug)]
struct Point { x: i32, y: i32 }

#[derive(Debug)]
struct Line { from: Point, to: Point }

#[derive(Debug)]
struct Circle { center: Point, radius: i32 }

#[derive(Debug)]
struct Shape { lines: Vec<Line> }
"""
_CSS = """.title { color: crimson; }
.note { color: crimson; }
.error { color: crimson; }
.link { color: crimson; }
"""

_CLASS = """class Queue:
    pass


def first(waiting: Queue) -> Queue:
    return waiting or Queue()
"""
_LOOP = """def total(orders):
    whole = 0
    for o in orders:
        if o.is_paid:
            whole += o.price * o.count
    return whole
"""

_READER = """def read(path):
    return Path(path).read_text()


first = read("a.txt")
second = read("b.txt")
print(read("c.txt"), first, second)
"""
_LAZY = """from shop.models import Order, User


def load():
    from shop.models import User

    return User.all()


def count():
    from shop.models import Item, Order

    return Order.count() + Item.count()
"""

LOGGING = _renamed(
    "another level of logging",
    "calls.py",
    _LOGGING,
    ":7s/info/debug/<CR>:9s/info/debug/<CR>",
    ("info", "debug"),
)
PRINTS = _renamed(
    "calls of print become calls of a logger",
    "app.py",
    _PRINTS,
    ":2s/print/logger.info/<CR>:4s/print/logger.info/<CR>",
    ("print", "logger.info"),
)
STORIES = (
    _renamed(
        "a variable gets another name",
        "loader.py",
        _LOADER,
        ":2s/handle/stream/<CR>:3s/handle/stream/<CR>",
        ("handle", "stream"),
    ),
    LOGGING,
    PRINTS,
    _renamed(
        "calls of the console become calls of a logger",
        "run.js",
        _CONSOLE,
        ":2s/console.log/logger.debug/<CR>:4s/console.log/logger.debug/<CR>",
        ("console.log", "logger.debug"),
    ),
    replace(
        _renamed(
            "calls become awaited",
            "load.py",
            _ASYNC,
            ":2s/client/await client/<CR>:3s/client/await client/<CR>",
            ("= client", "= await client"),
        ),
        asks=True,
    ),
    _renamed(
        "a table gets another name",
        "users.sql",
        _SQL,
        ":1s/users/people/<CR>:2s/users/people/<CR>",
        ("users", "people"),
    ),
    _renamed(
        "a folder moves",
        "install.sh",
        _SHELL,
        ":1s/build/dist/<CR>:2s/build/dist/<CR>",
        ("build", "dist"),
    ),
    _renamed(
        "a class changes",
        "list.html",
        _HTML,
        ":2s/item/entry/<CR>:3s/item/entry/<CR>",
        ('"item"', '"entry"'),
    ),
    _renamed(
        "declarations change",
        "read.js",
        _JS,
        ":1s/var/const/<CR>:2s/var/const/<CR>",
        ("var", "const"),
    ),
    _renamed(
        "a program gets another name",
        "README.md",
        _MARKDOWN,
        ":1s/slip/slipstream/<CR>:2s/slip/slipstream/<CR>",
        ("`slip ", "`slipstream "),
    ),
    _renamed(
        "a function gets another name",
        "calls_load.py",
        _PYTHON_CALLS,
        ":1s/load/read_text/<CR>",
        ("load", "read_text"),
    ),
    _renamed(
        "a parameter gets another name",
        "area.ts",
        _PARAMETER,
        ":1s/w:/width:/<CR>",
        ("(w:", "(width:"),
        ("w * scale", "width * scale"),
        ("(w <", "(width <"),
        ("* w;", "* width;"),
    ),
    _renamed(
        "a method gets another name",
        "store.py",
        _METHOD,
        ":2s/put/add/<CR>",
        ("put(", "add("),
    ),
    _renamed(
        "an attribute gets another name",
        "clock.py",
        _ATTRIBUTE,
        ":3s/now/ticks/<CR>",
        ("now", "ticks"),
    ),
    _renamed(
        "a type gets another name",
        "shapes.go",
        _GO,
        ":3s/Point/Place/<CR>",
        ("Point", "Place"),
    ),
    _renamed(
        "a constant gets another name",
        "limit.rs",
        _RUST,
        ":1s/LIMIT/NUM_FIRST/<CR>",
        ("LIMIT", "NUM_FIRST"),
    ),
    _renamed(
        "a private method gets another name",
        "Sums.java",
        _JAVA,
        ":2s/add/sum/<CR>",
        ("add(", "sum("),
    ),
    _renamed(
        "a class gets another name",
        "queue.py",
        _CLASS,
        ":1s/Queue/Backlog/<CR>",
        ("Queue", "Backlog"),
    ),
    _renamed(
        "a loop gets a longer name for its items",
        "total.py",
        _LOOP,
        ":3s/for o/for order/<CR>",
        ("for o ", "for order "),
        ("o.", "order."),
    ),
    _renamed(
        "a type changes",
        "box.py",
        _TYPES,
        ":1s/int/float/<CR>:5s/int/float/<CR>",
        ("int", "float"),
    ),
    _renamed(
        "a derive is added",
        "shapes.rs",
        _DERIVES,
        ":1s/Debug/Debug, Clone/<CR>:4s/Debug/Debug, Clone/<CR>",
        ("Debug", "Debug, Clone"),
    ),
    _renamed(
        "a color changes",
        "style.css",
        _CSS,
        ":1s/crimson/darkred/<CR>:2s/crimson/darkred/<CR>",
        ("crimson", "darkred"),
    ),
    _renamed(
        "an import moves",
        "shop.py",
        _LAZY,
        ":1s/models/schema/<CR>",
        ("models import Order", "schema import Order"),
        ("models import User", "schema import User"),
    ),
)

_TWO = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n"
_PROSE = "The cat sat on the mat.\nThe dog lay in the sun.\nThe bird sang in the tree.\n"

SILENT = (
    Story("an order that matters to one line", "two.py", _TWO, ":2s/a + b/b + a/<CR>", ""),
    Story(
        "a comment is corrected",
        "note.py",
        "# teh first\nx = 1\n# the second\ny = 2\n",
        ":1s/teh/the/<CR>",
        "",
    ),
    Story("a number changes once", "sizes.py", "width = 10\nheight = 20\ndepth = 30\n", ":1s/10/12/<CR>", ""),
    Story("a word of prose changes", "story.md", _PROSE, ":1s/cat/hen/<CR>", ""),
    Story("a line is added", "add.py", _TWO, "ggO# Arithmetic.<Esc>", ""),
    Story("a change is undone", "undone.py", _LOADER, "ggjwcwstream<Esc>u", ""),
    Story("a change is made everywhere", "all.py", _LOADER, ":%s/handle/stream/<CR>", ""),
    Story("a line is deleted", "gone.py", _TWO, "Gdd", ""),
    Story("blank lines are added", "blank.py", _TWO, "ggo<Esc>o<Esc>", ""),
    Story(
        "a string of its own changes",
        "greet.py",
        'a = "hello"\nb = "world"\nc = "again"\n',
        ":1s/hello/hallo/<CR>",
        "",
    ),
    Story(
        "an argument that may be left out is added",
        "reader.py",
        _READER,
        ':1s/path/path, encoding=None/<CR>:5s/txt"/txt", "utf-8"/<CR>',
        "",
    ),
    Story(
        "another thing is imported", "shop.py", _LAZY, ":1s/models.*/schema import Orders, Person/<CR>", ""
    ),
)
