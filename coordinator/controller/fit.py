"""Fixed cost of a round: t = a + tau n, fitted when n has varied enough to tell a from tau (ALGORITHMS 7.6).

Plain t/n makes small shares look slow, and the slow-looking board then gets a still smaller share.
"""

from collections.abc import Sequence

SPREAD = 1.5  # largest over smallest n below which the intercept is noise
RESIDUAL = 0.10  # relative scatter above which the speed itself changed and no line fits


def fixed_cost(points: Sequence[tuple[int, float]], earlier: float | None) -> float | None:
    """The intercept a >= 0 of the least-squares line through (samples, seconds or joules).

    `earlier` comes back where n varied too little or the points lie on no rising line.
    """
    if len(points) < 2:
        return earlier
    smallest = min(n for n, _ in points)
    if max(n for n, _ in points) <= SPREAD * smallest:
        return earlier
    # Relative errors are alike for small and large n (noise is a share of t), hence weights 1/value^2.
    weight = [1 / (value * value) for _, value in points]
    total = sum(weight)
    mean_n = sum(w * n for w, (n, _) in zip(weight, points, strict=True)) / total
    mean_v = sum(w * v for w, (_, v) in zip(weight, points, strict=True)) / total
    var = sum(w * (n - mean_n) ** 2 for w, (n, _) in zip(weight, points, strict=True))
    cov = sum(w * (n - mean_n) * (v - mean_v) for w, (n, v) in zip(weight, points, strict=True))
    slope = cov / var
    if slope <= 0:
        return earlier
    intercept = max(0.0, mean_v - slope * mean_n)
    if intercept == 0.0:
        slope = sum(w * n * v for w, (n, v) in zip(weight, points, strict=True)) / sum(
            w * n * n for w, (n, _) in zip(weight, points, strict=True)
        )
    scatter = sum(w * (intercept + slope * n - v) ** 2 for w, (n, v) in zip(weight, points, strict=True))
    if (scatter / len(points)) ** 0.5 > RESIDUAL:
        return earlier
    return intercept
