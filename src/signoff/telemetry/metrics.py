"""Numbers in Prometheus' text format: counters, gauges and histograms. Knows nothing of what is counted.

Counters change on the event loop and, for the store, on no other thread, so no lock is needed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from signoff.dataclass import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES = 500
"""The most combinations of labels of one metric. Further ones are counted under `other`."""
OTHER = "other"

Labels = tuple[str, ...]


@dataclass
class Counter:
    """A number that only grows, for each combination of its labels."""

    name: str
    help: str
    labels: Labels = ()
    values: dict[Labels, float] = field(default_factory=dict[Labels, float])
    """Label values -> number."""

    def __post_init__(self) -> None:
        if not self.labels:
            self.values[()] = 0

    def add(self, *values: str, by: float = 1) -> None:
        if values not in self.values and len(self.values) >= MOST_SERIES:
            values = (OTHER,) * len(self.labels)
        self.values[values] = self.values.get(values, 0) + by

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "counter")
        for values, number in sorted(self.values.items()):
            yield _sample(self.name, zip(self.labels, values, strict=True), number)


@dataclass
class Histogram:
    """How many observed values are at most as large as each bound."""

    name: str
    help: str
    bounds: Sequence[float]
    total: float = 0.0
    counts: list[int] = field(default_factory=list[int])
    """One number per bound, and one for the values above the last."""

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "histogram")
        below = 0
        for bound, count in zip((*map(_number, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            yield _sample(f"{self.name}_bucket", [("le", bound)], below)
        yield _sample(f"{self.name}_sum", (), self.total)
        yield _sample(f"{self.name}_count", (), below)


@dataclass(frozen=True)
class Gauge:
    """A number that is known now: (label values, number) for each combination of its labels."""

    name: str
    help: str
    samples: Sequence[tuple[Labels, float]]
    labels: Labels = ()

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.help, "gauge")
        for values, number in self.samples:
            yield _sample(self.name, zip(self.labels, values, strict=True), number)


def render(metrics: Iterable[Counter | Histogram | Gauge]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {_escaped(help, quotes=False)}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: Iterable[tuple[str, str]], number: float) -> str:
    written = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
    return f"{name}{{{written}}} {_number(number)}" if written else f"{name} {_number(number)}"


def _number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
