"""How long the record takes: `python benchmarks/store.py [URL]` (default: a SQLite file in a temporary directory).

Prints the best of three per line, in milliseconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY)]

from nodeworthy.model.record import Outcome  # noqa: E402
from nodeworthy.record.backup import back_up, verify  # noqa: E402
from nodeworthy.record.store import open_store  # noqa: E402
from tests.record_samples import AT, entry, finding, state  # noqa: E402

NODES = [f"n{number:05}" for number in range(10_000)]


def best(what: str, work: Callable[[], object], times: int = 3) -> None:
    took = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    print(f"{what:66} {min(took) * 1000:9.1f} ms")


def main() -> None:
    store = open_store(sys.argv[1] if len(sys.argv) > 1 else "temporary:")
    moves = Outcome(AT, entries=tuple(entry(n, "node.state") for n in NODES), states=tuple(state(n) for n in NODES))
    opened = Outcome(AT, findings=tuple(finding(n) for n in NODES))
    small = Outcome(AT, entries=(entry(),), findings=(finding(),), states=(state(),), cursors={"k": {"at": 1}})
    best("one turn: 10,000 node transitions, each with its ledger entry", lambda: store.commit_turn(moves))
    best("one turn: 10,000 findings opened or changed", lambda: store.commit_turn(opened))
    best("one turn: one finding, entry, state and cursor", lambda: store.commit_turn(small), times=50)
    best("load with 10,000 open findings", store.load)
    best("1,000 ledger entries from the middle", lambda: store.entries(15_000))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "backup.gz"
        rows = sum(store.info().rows.values())
        best(f"backup of {rows:,} rows", lambda: back_up(store, file, now=AT, force=True))
        best(f"verify it ({file.stat().st_size / 1e6:.1f} MB)", lambda: verify(file))
    best(
        f"prune of {store.info().rows['ledger']:,} entries and as many states",
        lambda: store.prune(AT + 1, now=AT),
        times=1,
    )
    store.close()


if __name__ == "__main__":
    main()
