"""The algebra of X25519, as the crate computes it: checked by sympy over all inputs, and over small fields exhaustively.

Run it anywhere, with the packages of requirements.txt; it prints each claim and fails at the first that does not hold. The
lanes are lists of four, permuted as in `../src/x25519/ladder.rs` and `multiple.rs`.
"""

import pathlib
import re

from sympy import Poly, cancel, factor, fraction, groebner, isprime, reduced, symbols

SOURCE = pathlib.Path(__file__).parent.parent / "src"
P = 2**255 - 19
A = 486662
ORDER = 2**252 + 27742317777372353535851937790883648493


def main():
    constants()
    inversion()
    reduction()
    doubling_and_differential_addition()
    ladder_of_small_fields()
    edwards_addition()
    completeness_in_small_fields()
    map_between_the_curves()
    digits()
    print("all claims hold")


def claim(text, holds):
    print(f"{'ok' if holds else 'FALSE'}: {text}")
    assert holds, text


def rust(file, pattern):
    """What the pattern's groups match in a source file, which has it once."""
    found = re.findall(pattern, (SOURCE / file).read_text(), re.S)
    assert len(found) == 1, f"{pattern} in {file}: {len(found)}"
    return found[0]


def rust_element(name):
    return int.from_bytes(bytes.fromhex(rust("x25519/table.rs", rf'const {name}: \[u64; 5\] = element\("(\w+)"\)')), "little")


def is_square(x):
    return pow(x, (P - 1) // 2, P) <= 1


# The lanes, for any ring.


def permute(order, lanes):
    return [lanes[order >> bits & 3] for bits in (0, 2, 4, 6)]


def total(minus, a, b):
    return [x - y if minus >> i & 1 else x + y for i, (x, y) in enumerate(zip(a, b))]


def times(a, b):
    return [x * y for x, y in zip(a, b)]


def without(lanes, a):
    return [0 if lanes >> i & 1 else x for i, x in enumerate(a)]


def blend(lanes, a, b):
    return [y if lanes >> i & 1 else x for i, (x, y) in enumerate(zip(a, b))]


def evens(s):
    return permute(0b10_10_00_00, s)


def odds(s):
    return permute(0b11_11_01_01, s)


def step(s, swap, base, a24):
    """One step of the ladder: `first`, `second` and `third` of ladder.rs."""
    p = total(0b1010, evens(s), odds(s))
    m = times([p[i ^ swap] for i in (0, 1, 3, 2)], [p[i ^ swap] for i in (0, 1, 0, 1)])
    even, odd = evens(m), odds(m)
    n = total(0b1010, even, without(0b0001, odd))
    by = blend(0b0010, blend(0b0001, n, odd), [a24] * 4)
    q = [x + y for x, y in zip(times(n, by), without(0b1101, even))]
    return times(q, blend(0b0010, base, n))


def turned(p):
    return total(0b0001, permute(0b11_10_01_01, p), without(0b1100, permute(0, p)))


def cached(p, d):
    """(Y - X, Y + X, 2Z, 2dT): `cached` of multiple.rs."""
    return times(turned(p), [1, 1, 2, 2 * d])


def plus(p, other):
    """`plus` of multiple.rs."""
    m = times(turned(p), other)
    s = total(0b0011, permute(0b01_10_10_01, m), permute(0b00_11_11_00, m))
    return times(permute(0b00_01_10_00, s), permute(0b11_10_11_01, s))


# The claims.


def constants():
    claim("p is prime, and 1 modulo 4: -1 is a square", isprime(P) and P % 4 == 1 and is_square(-1 % P))
    claim("the order of the base point is prime", isprime(ORDER))
    claim("a24 is (A - 2) / 4", 4 * int(rust("x25519/ladder.rs", r"A24: \[u64; 5\] = \[([\d_]+), 0, 0, 0, 0\]")) + 2 == A)
    claim("A^2 - 4 is no square", not is_square(A * A - 4))
    d = rust_element("D")
    claim("d is -121665/121666", (121666 * d + 121665) % P == 0)
    claim("d is no square", not is_square(d))
    x, y = rust_element("BASE_X"), rust_element("BASE_Y")
    claim("the base point is on the curve", (-x * x + y * y - 1 - d * x * x * y * y) % P == 0)
    claim("its u is 9", (1 + y) * pow(1 - y, -1, P) % P == 9)
    claim("its order is the prime", affine(multiple(ORDER, x, y, d)) == (0, 1))
    claim("no multiple of 8 from 8 to 2^255 - 1 is a multiple of it", 8 * ORDER >= 2**255)
    u = 9
    for k in (1, 2, 3, 8, 2**254 + 8, ORDER - 1):
        px, py = affine(multiple(k, x, y, d))
        assert ladder(k, u, P, 121665) == (1 + py) * pow(1 - py, -1, P) % P
    claim("multiples of the base point on both curves have the same u", True)


def multiple(k, x, y, d):
    sum_, power = [0, 1, 1, 0], [x, y, 1, x * y % P]
    while k:
        if k & 1:
            sum_ = [c % P for c in plus(sum_, cached(power, d))]
        power = [c % P for c in plus(power, cached(power, d))]
        k >>= 1
    return sum_


def affine(point):
    inverse = pow(point[2], -1, P)
    return point[0] * inverse % P, point[1] * inverse % P


def ladder(k, u, p, a24, bits=256):
    """As ladder.rs: the u of a multiple, or 0 for the neutral point."""
    s, previous = [1, 0, u, 1], 0
    for t in reversed(range(bits)):
        bit = k >> t & 1
        s = [x % p for x in step(s, (bit ^ previous) << 1, [1, 1, 1, u], a24)]
        previous = bit
    x, z = (s[2], s[3]) if previous else (s[0], s[1])
    return x * pow(z, p - 2, p) % p


def inversion():
    steps = re.findall(r"\((\d+), (\d+)\)", rust("field25519.rs", r"static INVERSION: [^=]*=\s*\[(.*?)\];"))
    exponents = [1, 2]
    for squarings, by in steps:
        exponents.append((exponents[-1] << int(squarings)) + exponents[int(by)])
    claim("the chain of the inversion ends with p - 2", exponents[-1] == P - 2)


def reduction():
    """Sums of limbs keep their value modulo p."""
    mask = int(rust("field25519.rs", r"const MASK: u64 = \(1 << (\d+)\) - 1"))
    claim("limbs have 51 bits", mask == 51)
    z, c = symbols("z:5"), symbols("c:5")
    radix = [2 ** (51 * i) for i in range(5)]
    low = [z[i] - 2**51 * c[i] for i in range(5)]
    carried = [low[0] + 19 * c[4], *(low[i] + c[i - 1] for i in range(1, 5))]
    difference = Poly(sum(r * (x - y) for r, x, y in zip(radix, carried, z)), *z, *c)
    claim("`carried` keeps the value modulo p", all(x % P == 0 for x in difference.coeffs()))
    a, b = symbols("a:5"), symbols("b:5")
    # lo and hi of each product: a b = lo + 2^52 hi.
    lo, hi = symbols("lo:25"), symbols("hi:25")
    low, high = [0] * 10, [0] * 10
    for i in range(5):
        for j in range(5):
            low[i + j] += lo[5 * i + j]
            high[i + j + 1] += hi[5 * i + j]
    folded = [low[i] + 2 * high[i] + 19 * (low[i + 5] + 2 * high[i + 5]) for i in range(5)]
    products = sum(2 ** (51 * (i + j)) * (lo[5 * i + j] + 2**52 * hi[5 * i + j]) for i in range(5) for j in range(5))
    difference = Poly(sum(r * x for r, x in zip(radix, folded)) - products, *lo, *hi)
    claim("`times` keeps the value modulo p", all(x % P == 0 for x in difference.coeffs()))
    ends = [0, 1, P - 1, P, P + 1, 2 * P - 1]
    holds = all(h + 19 * q - (q << 255) == h % P for h in ends for q in [(h + 19) >> 255])
    # Between these, the quotient is constant, and both sides grow alike.
    claim("`canonical` is the value modulo p for any below 2p", holds and (P + 19) >> 255 == 1 and (2 * P - 1 + 19) >> 255 == 1)


def doubling_and_differential_addition():
    """The step against the group law of v^2 = u^3 + A u^2 + u, with A and the points as symbols."""
    x1, y1, x2, y2, z2, z3, a = symbols("x1 y1 x2 y2 z2 z3 a")
    curve = lambda x: x**3 + a * x**2 + x
    a24 = (a - 2) / 4
    # P2 = (x1, y1) scaled by z2, and P3 = (x2, y2) scaled by z3. The difference P3 - P2 has the slope of (x1, -y1).
    slope = lambda sign: (y2 - sign * y1) / (x2 - x1)
    both = lambda sign: slope(sign) ** 2 - a - x1 - x2
    product = cancel((both(1) * both(-1)))
    numerator, denominator = fraction(product)
    _, rest = reduced(numerator, [y1**2 - curve(x1), y2**2 - curve(x2)], y1, y2, x1, x2, a)
    claim(
        "x(P + Q) x(P - Q) = ((x1 x2 - 1) / (x1 - x2))^2 by the chords",
        cancel(rest / denominator - ((x1 * x2 - 1) / (x1 - x2)) ** 2) == 0,
    )
    doubled = cancel(((3 * x1**2 + 2 * a * x1 + 1) ** 2 / (4 * curve(x1))) - a - 2 * x1)
    claim("x(2P) = (x^2 - 1)^2 / (4 x (x^2 + A x + 1)) by the tangent", cancel(doubled - (x1**2 - 1) ** 2 / (4 * curve(x1))) == 0)
    u = symbols("u")
    s = step([x1 * z2, z2, x2 * z3, z3], 0, [1, 1, 1, u], a24)
    claim("a step doubles the first point", cancel(s[0] / s[1] - doubled) == 0)
    claim("a step adds the points", cancel(s[2] / s[3] - ((x1 * x2 - 1) / (x1 - x2)) ** 2 / u) == 0)
    swapped = step([x2 * z3, z3, x1 * z2, z2], 2, [1, 1, 1, u], a24)
    claim("an exchange before a step is that of the points", all(cancel(x - y) == 0 for x, y in zip(s, swapped)))


def ladder_of_small_fields():
    """All scalars and all points of whole curves and their twists: no point is an exception, as theorem B.1 of Bernstein's paper
    (Curve25519: new Diffie-Hellman speed records, 2006) says for curves where A^2 - 4 is no square."""
    for p in (13, 17, 29):
        squares = {x * x % p for x in range(p)}
        for a in range(3, p):
            if (a * a - 4) % p in squares:
                continue
            a24 = (a - 2) * pow(4, -1, p) % p
            for u in range(p):
                for k, expected in zip(range(3 * p), multiples_by_the_group_law(u, p, a, squares)):
                    assert ladder(k, u, p, a24, 7) == expected, (p, a, u, k)
    claim("in fields of 13, 17 and 29 elements, the ladder is right for all points and scalars of all such curves", True)


def multiples_by_the_group_law(u, p, a, squares):
    """The u of 0, 1, 2 .. (u, v) on b v^2 = u^3 + a u^2 + u, with the b that has such a point; 0 for the neutral one."""
    right = (u**3 + a * u * u + u) % p
    # Any non-square is the twist's b.
    b = 1 if right in squares else next(x for x in range(p) if x not in squares)
    v = next(v for v in range(p) if (b * v * v - right) % p == 0)
    result = None
    while True:
        yield 0 if result is None else result[0]
        result = chord(result, (u, v), p, a, b)


def chord(one, two, p, a, b):
    if one is None or two is None:
        return one or two
    (x1, y1), (x2, y2) = one, two
    if x1 == x2 and (y1 + y2) % p == 0:
        return None
    if x1 == x2:
        slope = (3 * x1 * x1 + 2 * a * x1 + 1) * pow(2 * b * y1, -1, p)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, p)
    x = (b * slope * slope - a - x1 - x2) % p
    return x, (slope * (x1 - x) - y1) % p


def edwards_addition():
    """`plus` against the law of -x^2 + y^2 = 1 + d x^2 y^2."""
    x1, y1, z1, x2, y2, z2, d = symbols("x1 y1 z1 x2 y2 z2 d")
    first = [x1 * z1, y1 * z1, z1, x1 * y1 * z1]
    second = [x2 * z2, y2 * z2, z2, x2 * y2 * z2]
    x, y, z, t = plus(first, cached(second, d))
    product = d * x1 * x2 * y1 * y2
    claim("x of the sum", cancel(x / z - (x1 * y2 + x2 * y1) / (1 + product)) == 0)
    claim("y of the sum", cancel(y / z - (y1 * y2 + x1 * x2) / (1 - product)) == 0)
    claim("T of the sum is X Y / Z", cancel(t * z - x * y) == 0)
    claim("Z of the sum is 4 z1^2 z2^2 (1 - (d x1 x2 y1 y2)^2)", cancel(z - 4 * (z1 * z2) ** 2 * (1 - product**2)) == 0)
    minus = cached([-x2, y2, 1, -x2 * y2], d)
    table = [y2 - x2, y2 + x2, 2, 2 * d * x2 * y2]
    claim("minus an entry of the table exchanges its first lanes and negates the last", minus == [table[1], table[0], 2, -table[3]])
    start = plus([0, 1, 1, 0], table)
    claim("the first sum is its entry", cancel(start[0] / start[2] - x2) == 0 and cancel(start[1] / start[2] - y2) == 0)
    # Completeness (Bernstein, Birkner, Joye, Lange and Peters, 2008, section 6, after Bernstein and Lange, 2007, theorem 3.3): if
    # d x1 x2 y1 y2 were e = 1 or -1, the two equations would make d a square, given that -1 is one.
    i = symbols("i")
    relations = [-(x1**2) + y1**2 - 1 - d * x1**2 * y1**2, -(x2**2) + y2**2 - 1 - d * x2**2 * y2**2, i**2 + 1]
    for e in (1, -1):
        for sign in (1, -1):
            # (i x1 + sign e y1)^2 = d x1^2 y1^2 (i x2 + sign y2)^2, for e = d x1 x2 y1 y2.
            left = (i * x1 + sign * e * y1) ** 2 - d * x1**2 * y1**2 * (i * x2 + sign * y2) ** 2
            basis = groebner([*relations, d * x1 * x2 * y1 * y2 - e], i, x1, y1, x2, y2, d, order="grevlex")
            assert basis.contains(left), (e, sign)
    claim("a vanishing denominator would make d a square: additions are complete", True)


def completeness_in_small_fields():
    for p in (13, 17, 29):
        squares = {x * x % p for x in range(p)}
        for d in set(range(p)) - squares:
            points = [(x, y) for x in range(p) for y in range(p) if (-x * x + y * y - 1 - d * x * x * y * y) % p == 0]
            for x1, y1 in points:
                for x2, y2 in points:
                    x, y, z, t = (c % p for c in plus([x1, y1, 1, x1 * y1], cached([x2, y2, 1, x2 * y2], d)))
                    assert z and (t * z - x * y) % p == 0
                    inverse = pow(z, -1, p)
                    assert (x * inverse % p, y * inverse % p) in points
    claim("in fields of 13, 17 and 29 elements, all additions of all complete curves are defined", True)


def map_between_the_curves():
    """(x, y) to u = (1 + y) / (1 - y), v = c u / x with c^2 = -(A + 2)."""
    x, y, c = symbols("x y c")
    d = -(A - 2) * pow(A + 2, -1, P) % P
    claim("d is -(A - 2)/(A + 2)", d == rust_element("D"))
    claim("-(A + 2) is a square", is_square(-(A + 2) % P))
    a = symbols("a")
    u = (1 + y) / (1 - y)
    # With x^2 = (y^2 - 1) / (1 + d y^2), from the Edwards equation.
    general_d = -(a - 2) / (a + 2)
    square_of_v = -(a + 2) * u**2 * (1 + general_d * y**2) / (y**2 - 1)
    claim("the map takes points to points", factor(cancel(square_of_v - (u**3 + a * u**2 + u))) == 0)
    # It takes the neutral point to the neutral point, so it is a homomorphism (Silverman, The Arithmetic of Elliptic Curves, III.4.8).


def digits():
    """The table's windows: 16 times the odd digits' sum, and the even digits' sum."""
    digit = symbols("d:64")
    pairs = 16 * sum(256**w * digit[2 * w + 1] for w in range(32)) + sum(256**w * digit[2 * w] for w in range(32))
    claim("windows of eight bits sum up all digits", Poly(pairs - sum(16**i * x for i, x in enumerate(digit)), *digit).is_zero)
    # With a carry of 0 or 1: digits of -8 to 7, and the next carry is 0 or 1. The highest takes its carry: 7 + 1.
    for value in range(17):
        carry = (value + 8) >> 4
        assert carry in (0, 1) and -8 <= value - (carry << 4) <= 7
    claim("digits are from -8 to 8", True)


main()
