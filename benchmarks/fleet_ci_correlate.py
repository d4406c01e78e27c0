"""How long the correlation and the clusters of many jobs take, beside pandas' `DataFrame.corr` on fewer of them.

    python -m benchmarks.fleet_ci_correlate --jobs 2000 --commits 10000

A history of random results with 2 % failures and 20 % missing. Correlations of all pairs are products of matrices
(`deep500.fleet.ci.phi_matrix`); pandas goes through the pairs one by one, so it gets a tenth of the jobs, a hundredth
of the pairs. Both are compared where they overlap: they have to be equal to 1e-12.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import pandas as pd

from deep500.fleet.ci.clustering import cluster_rows
from deep500.fleet.ci.correlating import phi_matrix


def main() -> int:
    """Measure; exit with 1 when the two differ, or the limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0, help="most seconds for both together (default 30)")
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    results = (generator.random((arguments.commits, arguments.jobs), dtype=np.float32) > 0.02).astype(np.float32)
    results[generator.random(results.shape, dtype=np.float32) < 0.2] = np.nan
    correlating, clustering = [], []
    for _ in range(arguments.repeats):
        start = time.perf_counter()
        matrix, _ = phi_matrix(results, 10)
        correlating.append(time.perf_counter() - start)
        start = time.perf_counter()
        cluster_rows(np.nan_to_num(matrix, nan=0.0))
        clustering.append(time.perf_counter() - start)
    few = max(2, arguments.jobs // 10)
    start = time.perf_counter()
    theirs = pd.DataFrame(results[:, :few].astype(np.float64)).corr(min_periods=10).to_numpy()
    pandas_s = time.perf_counter() - start
    difference = float(np.nanmax(np.abs(theirs - matrix[:few, :few])))
    ours_s, clusters_s = float(np.median(correlating)), float(np.median(clustering))
    scaled_s = pandas_s * (arguments.jobs / few) ** 2
    print("| jobs | commits | correlations s | clusters s | pandas s (jobs) | pandas s for as many | differ by |")
    print(
        f"| {arguments.jobs} | {arguments.commits} | {ours_s:.2f} | {clusters_s:.2f} | {pandas_s:.2f} ({few}) | "
        f"about {scaled_s:.0f} | {difference:.1e} |"
    )
    return int(difference > 1e-12 or ours_s + clusters_s > arguments.limit)


if __name__ == "__main__":
    sys.exit(main())
