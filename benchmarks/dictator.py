"""How fast the dictator game is analysed: 2000 starts together against a loop over starts, and the cost by pool size.

The loop is the plain way to write equation 10, one start after the other; both follow the same starts to the same
points, and the benchmark refuses to time them if they do not. Pools beyond the published one are random profiles.

    python benchmarks/dictator.py [passes] [largest pool]
"""

import resource
import sys
import time
from pathlib import Path

from measure import RESULTS, compare, in_turn, report  # first, for it says how many threads libraries may use

# isort: split
import numpy as np

from fishpool.analysis.dominance import dominance
from fishpool.analysis.equilibria import equilibria, iterate, own_payoff, uniform_starts
from fishpool.documents import read_documents
from fishpool.games.dictator import payoff_matrix, play, stakes
from fishpool.oracles.decisions import published

AIMS = {20.0: 75, 5.0: 100, 1.0: 100}  # by beta
STARTS, TOLERANCE = 2000, 1e-9
AGAIN = 20  # times that ours is run for one reading of the clock, for which it is too short
POOLS = (9, 50, 200, 1000)
POOL_STARTS, POOL_BETA = 500, 20.0


def main(passes: int, largest: int) -> None:
    documents = read_documents(Path(__file__).parents[1] / "config" / "strategies")
    A = payoff_matrix(play(documents, published([d.name for d in documents])).decisions, stakes())
    starts = uniform_starts(len(A), STARTS, 1)
    if any(np.abs(in_a_loop(A, starts, beta) - together(A, starts, beta)).max() > 1e-6 for beta in AIMS):
        sys.exit("benchmarks/dictator.py: the two programs do not reach the same points, so their times say nothing")
    programs = {
        (name, beta): lambda program=program, beta=beta, times=times: sum(
            len(program(A, starts, beta)) for _ in range(times)
        )
        for beta in AIMS
        for name, program, times in (("ours", together, AGAIN), ("loop over starts", in_a_loop, 1))
    }
    rates = in_turn(programs, passes)
    by_beta = {beta: {name: rates[name, beta] for name in ("ours", "loop over starts")} for beta in AIMS}
    comparisons = [
        compare(by_beta[beta], f"equilibria, beta {beta:g}", "starts", "loop over starts", aim)
        for beta, aim in AIMS.items()
    ]
    pools = [cost(size) for size in POOLS if size <= largest]
    details = {"strategies": len(A), "starts": STARTS, "rates": by_beta, "pool_starts": POOL_STARTS, "pools": pools}
    report("dictator", comparisons, details, ["scipy"])
    draw(pools, RESULTS / "dictator")


def in_a_loop(A: np.ndarray, starts: np.ndarray, beta: float) -> np.ndarray:
    ends = np.empty_like(starts)
    for i, field in enumerate(starts):
        while True:
            utility = beta * (A @ field)
            following = np.exp(utility - utility.max())
            following /= following.sum()
            change = np.abs(following - field).max()
            field = following
            if change < TOLERANCE:
                break
        ends[i] = field
    return ends


def together(A: np.ndarray, starts: np.ndarray, beta: float) -> np.ndarray:
    return iterate(own_payoff(A, beta), starts, tolerance=TOLERANCE).points


def cost(size: int) -> dict[str, float]:
    """Seconds for the equilibria and the dominance of one random profile, and the peak memory of the process so far."""
    rng = np.random.default_rng(size)
    A = payoff_matrix((rng.random((size, size)) < 0.5).astype(float), stakes())
    start = time.process_time()
    found = equilibria(
        own_payoff(A, POOL_BETA), uniform_starts(size, POOL_STARTS, 1), root_seeds=200 if size < 100 else 5
    )
    middle = time.process_time()
    verdicts = dominance(A)
    end = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    dominated = sum(verdict.kind != "none" for verdict in verdicts)
    converged = float(found.runs.converged.mean())
    print(
        f"  {size:5d} strategies: equilibria {middle - start:8.2f} s, dominance {end - middle:8.2f} s, "
        f"peak {memory:.2f} GiB; {len(found.points)} points, {converged:.0%} converged, {dominated} dominated",
        flush=True,
    )
    return {"strategies": size, "equilibria": middle - start, "dominance": end - middle, "peak_gib": memory}


def draw(pools: list[dict[str, float]], stem: Path) -> None:
    import altair as alt
    import polars as pl

    from fishpool.figures import style
    from fishpool.figures.files import save

    rows = pl.DataFrame(pools).unpivot(["equilibria", "dominance"], index="strategies", variable_name="part")
    chart = (
        alt.Chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("strategies:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=list(POOLS))),
            y=alt.Y("value:Q", scale=alt.Scale(type="log"), axis=alt.Axis(title="processor time (s)")),
            color=alt.Color("part:N", title=None, scale=alt.Scale(range=["#0072B2", "#E69F00"])),
        )
        .properties(width=320, height=200)
    )
    notes = [
        f"Random profiles; {POOL_STARTS} plain starts at β = {POOL_BETA:g}; all linear programmes of dominance. n = 1."
    ]
    save(style.page(chart, "What a pool costs", notes, "Processor time by number of strategies."), stem)


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*given, *(5, POOLS[-1])[len(given) :])
