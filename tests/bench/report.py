# SPDX-License-Identifier: Apache-2.0
"""report - outcomes of rows as a table or as JSON."""
import json
import math
import os
import platform
import statistics
from dataclasses import dataclass

from rows import FIGURES, Row

FAILED, MISSING, UNAVAILABLE = "FAILED", "MISSING", "NOT RUN"
HEAD = ("figure", "osbx", "peer", "value", "ratio", "budget", "verdict")


@dataclass(frozen=True)
class Stats:
    median: float
    best: float
    p95: float  # 95 of 100 were no worse
    n: int

    @classmethod
    def of(cls, samples, higher):
        if not samples:
            return None
        ordered = sorted(samples, reverse=higher)
        return cls(statistics.median(ordered), ordered[0],
                   ordered[math.ceil(len(ordered) * 0.95) - 1], len(ordered))


@dataclass(frozen=True)
class Outcome:
    row: Row
    osbx: Stats | None = None
    peer: Stats | None = None
    trouble: str | None = None  # FAILED, MISSING, UNAVAILABLE
    reason: str | None = None

    @property
    def ratio(self):
        return self.osbx.median / self.peer.median if self.osbx and self.peer else None

    @property
    def verdict(self):
        if self.trouble:
            return self.trouble
        if not self.row.budget:
            return "info"
        limit = self.row.budget.limit * (self.peer.median if self.row.budget.relative else 1)
        met = FIGURES[self.row.figure].keeps(self.osbx.median, limit)
        return "ok" if met else "short"


def number(value):
    """Three significant digits, no exponent"""
    digits = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{min(max(digits, 0), 3)}f}"


def cell(stats):
    return f"{number(stats.median)} ({number(stats.best)})" if stats else "-"


def budget_text(figure, budget):
    if not budget:
        return "-"
    return (f"{'aim ' if budget.aim else ''}{'>=' if figure.higher else '<='} {budget.limit:g} "
            f"{'x' if budget.relative else figure.unit}")


def line(outcome):
    row, figure = outcome.row, FIGURES[outcome.row.figure]
    return (f"{row.figure}/{row.who} {figure.unit}", cell(outcome.osbx), row.peer or "-",
            cell(outcome.peer), f"{outcome.ratio:.2f} x" if outcome.ratio else "-",
            budget_text(figure, row.budget), outcome.verdict)


def summary(outcomes):
    verdicts = [o.verdict for o in outcomes]
    words = {"ok": "ok", "short": "short", "info": "for information", UNAVAILABLE: "not run",
             MISSING: "without their peer", FAILED: "in error"}
    return ", ".join(f"{verdicts.count(v)} {text}" for v, text in words.items() if v in verdicts)


def table(outcomes, machine):
    lines = [HEAD, *map(line, outcomes)]
    widths = [max(len(row[i]) for row in lines) for i in range(len(HEAD))]
    text = [f"{key}: {value}" for key, value in machine.items()]
    text += ["values: median (best)", ""]
    text += ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in lines]
    text.append("")
    for name in dict.fromkeys(o.row.figure for o in outcomes):
        text.append(f"{name}: {FIGURES[name].title}; "
                    f"{'higher' if FIGURES[name].higher else 'lower'} is better")
    text += [f"{o.verdict} {o.row.key}: {o.reason}" for o in outcomes if o.reason]
    text += ["", f"{len(outcomes)} rows: {summary(outcomes)}"]
    return "\n".join(text)


def as_json(outcomes, machine):
    def plain(outcome):
        row, budget = outcome.row, outcome.row.budget
        return {
            "figure": row.figure, "who": row.who, "unit": FIGURES[row.figure].unit,
            "osbx": outcome.osbx and vars(outcome.osbx),
            "peer": row.peer, "value": outcome.peer and vars(outcome.peer),
            "ratio": outcome.ratio,
            "budget": budget and vars(budget),
            "verdict": outcome.verdict, "reason": outcome.reason,
        }

    return json.dumps({"machine": machine, "rows": list(map(plain, outcomes))}, indent=1)


def machine_facts():
    load = os.getloadavg()[0]
    busy = " (busy: not to be trusted)" if load > os.cpu_count() else ""
    return {"machine": f"{platform.system()} {platform.release()} {platform.machine()}, "
                       f"{os.cpu_count()} cpus, load {load:.1f}{busy}"}
