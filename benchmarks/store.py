"""How long the record takes, on a SQLite file of its own or on another store.

python -m benchmarks.store [--store postgresql://USER@HOST/DATABASE]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Figure, best, parser, report
from nodeworthy.model.record import Outcome
from nodeworthy.record.backup import back_up, verify
from nodeworthy.record.store import open_store
from tests.record_samples import AT, entry, finding, state


def figures(url: str, count: int) -> Iterator[Figure]:
    nodes = [f"n{number:05}" for number in range(count)]
    store = open_store(url)
    moves = Outcome(AT, entries=tuple(entry(n, "node.state") for n in nodes), states=tuple(state(n) for n in nodes))
    opened = Outcome(AT, findings=tuple(finding(n) for n in nodes))
    small = Outcome(AT, entries=(entry(),), findings=(finding(),), states=(state(),), cursors={"k": {"at": 1}})

    def took(what: str, seconds: float) -> Figure:
        return Figure(f"record: {what}", seconds * 1000, "ms")

    yield took(f"one turn: {count:,} node transitions, each with its entry", best(lambda: store.commit_turn(moves)))
    yield took(f"one turn: {count:,} findings opened or changed", best(lambda: store.commit_turn(opened)))
    yield took("one turn: one finding, entry, state and cursor", best(lambda: store.commit_turn(small), 50))
    yield took(f"load with {count:,} open findings", best(store.load))
    yield took("1,000 ledger entries from the middle", best(lambda: store.entries(count)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "backup.gz"
        rows = sum(store.info().rows.values())
        yield took(f"backup of {rows:,} rows", best(lambda: back_up(store, file, now=AT, force=True)))
        yield took("verify it", best(lambda: verify(file)))
    ledger = store.info().rows["ledger"]
    yield took(f"prune of {ledger:,} entries and as many states", best(lambda: store.prune(AT + 1, now=AT), 1))
    store.close()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--store", default="temporary:", help="a store that may be written to")
    given = options.parse_args()
    report(figures(given.store, 1_000 if given.small else 10_000), given)


if __name__ == "__main__":
    main()
