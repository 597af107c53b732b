#!/usr/bin/env python3
"""Proofs for src/p256/inverse.rs: the number of division steps, the transition matrices, and the bounds of all integers.

The steps are those of D. J. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation and modular inversion" (2019), with
delta beginning at 1/2. That 590 of them suffice below 2^256 is P. Wuille's result ("safegcd-bounds", 2021), by convex hulls;
this script computes it again, in exact arithmetic. That takes two minutes; --quick leaves it out.
"""

from itertools import product
from pathlib import Path
import re
import sys

SOURCE = (Path(__file__).parent.parent / "src" / "p256" / "inverse.rs").read_text()
STEPS, PARTS, MATRICES = (int(re.search(rf"const {name}: usize = (\d+);", SOURCE)[1]) for name in ("STEPS", "PARTS", "MATRICES"))
FIRST, SECOND = 2 * STEPS + 2, 3 * STEPS + 4
for name, text in (("FIRST", "2 * STEPS + 2"), ("SECOND", "3 * STEPS + 4")):
    assert f"const {name}: usize = {text};" in SOURCE
BITS = 62


def hull(points):
    """The vertices of the convex hull (A. M. Andrew's monotone chain)."""
    points = sorted(set(points))
    if len(points) < 3:
        return points

    def chain(points):
        out = []
        for x, y in points:
            while len(out) > 1:
                (ax, ay), (bx, by) = out[-2:]
                if (bx - ax) * (y - ay) > (by - ay) * (x - ax):
                    break
                out.pop()
            out.append((x, y))
        return out[:-1]

    return chain(points) + chain(reversed(points))


def steps_needed(bits):
    """Division steps that take any 0 <= g <= f <= 2^bits to g = 0.

    For each delta, the hull of all (f, g) that can be reached contains them, since a step is one of three linear maps for each
    delta. All are scaled by 2^step. A hull whose |g| is below 1 has g = 0, which stays, and needs no further step.
    """
    hulls = {0: [(0, 0), (1 << bits, 0), (1 << bits, 1 << bits)]}  # by delta - 1/2
    step = 0
    while hulls:
        step += 1
        reached = {}
        for k, points in hulls.items():
            even = reached.setdefault(k + 1, [])
            even += [(2 * f, g) for f, g in points]
            if k >= 0:  # delta is positive
                reached.setdefault(-k, []).extend((2 * g, g - f) for f, g in points)
            else:
                even += [(2 * f, g + f) for f, g in points]
        hulls = {k: hull(points) for k, points in reached.items()}
        hulls = {k: points for k, points in hulls.items() if max(abs(g) for _, g in points) >= 1 << step}
    return step


def check_steps():
    needed = steps_needed(256)
    assert needed <= STEPS * PARTS * MATRICES, needed
    print(f"{needed} division steps suffice below 2^256; the code makes {MATRICES} times {STEPS * PARTS}")


CASES = {"swapped": ((0, 2), (-1, 1)), "odd": ((2, 0), (1, 1)), "even": ((2, 0), (0, 1))}


def check_matrices():
    """By induction over the steps i: |u| + |v| <= 2^i and |q| + |r| <= 2^i, and the determinant is 2^i, as each step's own
    matrix has sums of rows of at most 2 and the determinant 2."""
    for (a, b), (c, d) in CASES.values():
        # |u'| + |v'| <= |a| (|u| + |v|) + |b| (|q| + |r|), and so for the second row.
        assert abs(a) + abs(b) <= 2 and abs(c) + abs(d) <= 2
        assert a * d - b * c == 2
    # Scaled by what is missing to 62 bits.
    assert 0 <= BITS - STEPS * PARTS
    # A product of two parts' matrices: each sum has two products of entries up to the rows' bounds.
    assert 2 * 2 ** (STEPS * PARTS) * 2 ** (BITS - STEPS * PARTS) <= 2**63
    # The low bits that the last part needs are correct: each part before it takes STEPS off the 62 of a limb.
    assert BITS - STEPS * (PARTS - 1) >= STEPS
    print(f"the rows of a matrix have at most the sum 2^{BITS}, and its determinant is not zero")


def check_packing():
    """f and g with their rows of the matrix: no step overflows, and the rows are recovered.

    After i steps, f is x + 2^(FIRST - i) u + 2^(SECOND - i) v, where |u| + |v| <= 2^i and x is what the steps make of the low
    bits alone, so that |x| < 2^STEPS; and so is g.
    """
    low = 2**STEPS
    most = low + 2**SECOND + 2**FIRST
    for i in range(STEPS + 1):
        assert low + 2 ** (FIRST - i) * 2**i + 2 ** (SECOND - i) * 2**i <= most
    # g + f or g - f, before it is halved.
    assert 2 * most < 2**63
    # The parity of g is that of its x, which decides each step: the rows' places are even before each.
    assert FIRST - (STEPS - 1) > 0
    # Rounding finds the second column if the rest is below half of its place, and then the first one.
    assert low + 2**FIRST < 2 ** (SECOND - STEPS - 1)
    assert low < 2 ** (FIRST - STEPS - 1)
    print("packed integers do not overflow, and their rows can be recovered")


def check_step():
    """The masks of the code make the three cases of a division step, for all small f, g and delta; and packed integers carry
    the rows of their matrix."""
    for f, g, k in product(range(-15, 16, 2), range(-16, 17), range(-9, 10)):
        zeta = -k - 1
        swap, odd = (-1 if zeta < 0 else 0), -(g & 1)
        both = swap & odd
        signed = (f ^ swap) - swap
        f2, g2, zeta = f ^ (f ^ g) & both, g + (signed & odd) >> 1, (zeta ^ both) - 1
        case = "even" if g % 2 == 0 else "swapped" if k >= 0 else "odd"
        (a, b), (c, d) = CASES[case]
        assert (2 * f2, 2 * g2) == (a * f + b * g, c * f + d * g)
        assert zeta == -(-k if case == "swapped" else k + 1) - 1
    for seed in range(2000):
        f, g, k = pow(3, seed, 2**STEPS) | 1, pow(5, seed * seed, 2**STEPS) * seed % 2**STEPS, seed % 19 - 9
        packed_f, packed_g, rows = f + 2**FIRST, g + 2**SECOND, ((1, 0), (0, 1))
        for _ in range(STEPS):
            case = "even" if packed_g % 2 == 0 else "swapped" if k >= 0 else "odd"
            (a, b), (c, d) = CASES[case]
            packed_f, packed_g = (a * packed_f + b * packed_g) // 2, (c * packed_f + d * packed_g) // 2
            (u, v), (q, r) = rows
            rows = ((a * u + b * q, a * v + b * r), (c * u + d * q, c * v + d * r))
            k = -k if case == "swapped" else k + 1
        for packed, row in ((packed_f, rows[0]), (packed_g, rows[1])):
            place = FIRST - STEPS
            width = SECOND - FIRST
            second = packed + 2 ** (place + width - 1) >> place + width
            first = packed - (second << place + width) + 2 ** (place - 1) >> place
            assert (first, second) == row
    print("the masks make the three cases of a division step, and packed integers carry their rows")


def check_bounds():
    """Bounds of `combined` and `combined_modulo`, for any modulus m below 2^256 and rows with |u| + |v| <= 2^62."""
    row = 1 << BITS
    limb = (1 << BITS) - 1
    # f and g begin below 2^256 and do not grow: |u f + v g| <= 2^62 max(|f|, |g|). Limbs are from 0 to 2^62 - 1, and the last
    # one from -2^8 to 2^8. So are those of d and e, from -2 m to m, with 2^9.
    top = 1 << 256 - 4 * BITS
    assert top * 2 < limb
    # The sum of a limb: a row times limbs, and what is carried.
    carry = 0
    for _ in range(5):
        total = row * limb + carry
        assert total < 1 << 127
        carry = (total >> BITS) + 1
    # With the multiple of m: at most |u| + |v| for negative d and e, and 2^62 - 1 for the lowest limb.
    times = row + limb
    assert times < 1 << 63, "fits into a limb's type"
    carry = 0
    for _ in range(5):
        total = row * limb + times * limb + carry
        assert total < 1 << 127
        carry = (total >> BITS) + 1
    # From d and e above -2 m and below m to the same: with m added to the negative ones, both are from -m to m. Then
    # |u d + v e| < 2^62 m, and at most 2^62 - 1 times m are taken away: from -2 m to m after the division.
    for m in (1, 2**256 - 1):
        least, most = -row * (m - 1) - limb * m, row * (m - 1)
        assert -2 * m * row < least and most < m * row
    # `carried` adds a limb and one of the modulus to a carry of at most 1.
    assert 2 * limb + 1 < 1 << 63 and 2 * limb + 1 >> BITS == 1
    print("no product, sum or carry of the matrices' application overflows")


def check_inverses():
    """The algorithm, written again over plain integers, for edge cases."""
    p = 2**256 - 2**224 + 2**192 + 2**96 - 1
    n = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    for m in (p, n):
        edges = [1, 2, 3, m - 1, m - 2, m // 2, m // 2 + 1, 2**255, 2**128 - 1, 2**224, 2**32]
        for x in edges + [3**i % m for i in range(1, 200)]:
            k, f, g, d, e = 0, m, x, 0, 1
            for _ in range(STEPS * PARTS * MATRICES):
                halve = lambda a: (a + m * (a % 2)) // 2 % m
                if k >= 0 and g % 2:
                    k, f, g, d, e = -k, g, (g - f) // 2, e, halve(e - d)
                elif g % 2:
                    k, g, e = k + 1, (g + f) // 2, halve(e + d)
                else:
                    k, g, e = k + 1, g // 2, halve(e)
            assert g == 0 and abs(f) == 1 and f * d * x % m == 1
    print("edge cases have their inverses")


if __name__ == "__main__":
    check_matrices()
    check_packing()
    check_step()
    check_bounds()
    check_inverses()
    if "--quick" not in sys.argv:
        check_steps()
