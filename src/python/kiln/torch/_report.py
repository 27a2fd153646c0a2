"""The report of all convolutions."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ._extension import report_rows

_COLUMNS = (
    ("pass", "pass"),
    ("problem", "problem"),
    ("served", "Kiln"),
    ("stand_in", "stand-in"),
    ("native", "native"),
    ("engine", "engine"),
    ("compile_ms", "compile ms"),
    ("kiln_us", "Kiln us"),
    ("native_us", "native us"),
    ("why", "why native"),
)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


class Report:
    """A row for each plan, and for each kind of call that PyTorch computed.

    ``str(report)`` is a table, ``report.rows`` a list of dicts, ``report.columns()`` a dict of lists for
    ``pandas.DataFrame``.
    """

    def __init__(self, rows: Sequence[Dict[str, Any]]) -> None:
        self.rows: List[Dict[str, Any]] = sorted(
            rows, key=lambda row: (-row["served"] - row["native"], row["problem"], row["pass"])
        )

    def columns(self) -> Dict[str, List[Any]]:
        names = self.rows[0].keys() if self.rows else [name for name, _ in _COLUMNS]
        return {name: [row[name] for row in self.rows] for name in names}

    @property
    def served(self) -> int:
        """The number of results that Kiln computed."""
        return sum(row["served"] for row in self.rows)

    @property
    def native(self) -> int:
        """The number of results that PyTorch computed."""
        return sum(row["native"] for row in self.rows)

    def __str__(self) -> str:
        lines = [[title for _, title in _COLUMNS]]
        for row in self.rows:
            cells = dict(row, problem=row["problem"] or f"{row['a']} * {row['b']}")
            lines.append([_text(cells[name]) for name, _ in _COLUMNS])
        widths = [max(len(line[i]) for line in lines) for i in range(len(_COLUMNS))]
        table = "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines
        )
        return f"{table}\n{self.served} by Kiln, {self.native} native"

    __repr__ = __str__


def report() -> Report:
    """Which convolutions Kiln computed and which it did not, and why; with kernels, compile times and
    measured times."""
    return Report(report_rows())
