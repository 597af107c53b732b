#!/usr/bin/env python3
"""Proofs for src/p256: constants, reductions, point formulas and the comb. Needs sympy."""

from pathlib import Path
import re

from sympy import Poly, cancel, factor, isprime, symbols

SOURCE = Path(__file__).parent.parent / "src" / "p256"
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)


def source_words(file, name):
    """The lists of four words that follow a constant's name."""
    text = (SOURCE / file).read_text()
    text = text[re.search(rf"const {name}\b[^=]*=", text).end() :]
    text = text[: text.index(";")]
    lists = re.findall(r"\[((?:\s*(?:0x[0-9a-f_]+|\d+|u64::MAX),?){4})\s*\]", text)
    word = lambda w: 2**64 - 1 if w == "u64::MAX" else int(w.replace("_", ""), 0)
    return [sum(word(w) << 64 * i for i, w in enumerate(re.findall(r"[0-9a-fx_]{2,}|u64::MAX|\d+", l))) for l in lists]


def add(p, q):
    """The chord and tangent law; None is the point at infinity."""
    if p is None or q is None:
        return p or q
    (x1, y1), (x2, y2) = p, q
    if x1 == x2:
        if (y1 + y2) % P == 0:
            return None
        slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P)
    else:
        slope = (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def multiple(k, point):
    result = None
    for bit in bin(k)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def check_constants():
    """Also that the order is N, by Hasse: a prime N with N times the base point at infinity divides it, and 2 N is too large.
    So the order is odd, and no point has y = 0."""
    assert source_words("modular.rs", "P") == [P] and source_words("modular.rs", "N") == [N]
    assert source_words("modular.rs", "B") == [B] and source_words("base.rs", "BASE") == list(BASE)
    assert isprime(P) and isprime(N) and 2**255 < N < P < 2**256
    x, y = BASE
    assert (y * y - x**3 + 3 * x - B) % P == 0
    assert multiple(N, BASE) is None and 2 * N > P + 1 + 2 * 2**128
    print("the constants are P-256's, and its order is the prime n")


def check_reductions():
    """The arithmetic of field.rs and modular.rs, apart from its limbs, which run over intervals in the crate's tests."""
    # p plus 1 in limbs: adding a limb times p at its place cancels it and adds these three products.
    assert P + 1 == 2**96 + 2**192 + (2**32 - 1) * 2**224
    assert 2**96 == 2 ** (52 + 44) and 2**192 == 2 ** (3 * 52 + 36) and (2**32 - 1) * 2**224 == (2**48 - 2**16) * 2 ** (4 * 52)
    assert (2**256 - (2**224 - 2**192 - 2**96 + 1)) % P == 0
    # `reduced` of a product of elements, of two such products, and of a product of sums of two elements.
    bound = 5 * 2**254
    for products in (bound * bound, 2 * bound * bound, 4 * bound * bound):
        assert (products + (2**260 - 1) * P) >> 260 < 2**257
    assert (bound * bound + (2**260 - 1) * P) >> 260 < bound and (2 * bound * bound + (2**260 - 1) * P) >> 260 < bound
    # `plain` of an element, and of a plain one.
    assert (bound + (2**260 - 1) * P) >> 260 <= P
    # Montgomery's product before its last subtraction, of any a and of b below the modulus.
    for m in (P, N):
        assert ((2**256 - 1) * (m - 1) + (2**256 - 1) * m) >> 256 < 2 * m
        assert 2**256 < 2 * m, "one subtraction reduces any four words"
    # Nonces: of the residues of 512 bits, none is likelier than another by more than 2^-255 of its probability.
    assert 2**512 // N > 2**255
    print("reductions keep their bounds")


def check_affine_sums():
    """`mmadd` and `madd`: identities of rational functions, wherever the two x differ."""
    x1, y1, x2, y2, t = symbols("x1 y1 x2 y2 t")
    slope = (y2 - y1) / (x2 - x1)
    x3 = slope**2 - x1 - x2
    y3 = slope * (x1 - x3) - y1
    for zz, zzz in ((1, 1), (t**2, t**3)):  # t = zzz / zz is a number for any zz and zzz with zz^3 = zzz^2
        x, y = x1 * zz, y1 * zzz
        h, r = x2 * zz - x, y2 * zzz - y
        hh, hhh = h**2, h**3
        q = x * hh
        sum_x = r**2 - hhh - 2 * q
        sum_y = r * (q - sum_x) + y * -hhh
        sum_zz, sum_zzz = zz * hh, zzz * hhh
        assert cancel(sum_x / sum_zz - x3) == 0 and cancel(sum_y / sum_zzz - y3) == 0
        assert cancel(sum_zz**3 - sum_zzz**2) == 0
        # (x zzz, y zz, zz zzz) is (x, y, 1) up to a factor.
        assert cancel(x * zzz / (zz * zzz) - x1) == 0 and cancel(y * zz / (zz * zzz) - y1) == 0
        # Not zero where the points differ and are not opposite.
        assert factor(sum_zz) == factor(zz**2 * zz * (x2 - x1) ** 2)
    print("the sums with affine points are right where x differs")


def complete_sum(p, q, b):
    """As sum_of_neighbours writes it."""
    (x1, y1, z1), (x2, y2, z2) = p, q
    xx, yy, zz = x1 * x2, y1 * y2, z1 * z2
    xy = (x1 + y1) * (x2 + y2) - (xx + yy)
    yz = (y1 + z1) * (y2 + z2) - (yy + zz)
    zx = (z1 + x1) * (z2 + x2) - (zz + xx)
    s = 3 * zx - 3 * b * zz
    m, p = yy - s, yy + s
    w = 3 * b * zx - (9 * zz + 3 * xx)
    v = 3 * xx - 3 * zz
    return xy * p - yz * w, p * m + v * w, yz * m + xy * v


def check_complete_sums():
    """For all points of the curve: the sum is right, and never (0, 0, 0)."""
    x1, y1, x2, y2, b = symbols("x1 y1 x2 y2 b")

    def reduced(polynomial):
        """Modulo the curve's equation for both points, as a polynomial of degree below 2 in each y."""
        squares = {y1: x1**3 - 3 * x1 + b, y2: x2**3 - 3 * x2 + b}
        polynomial = Poly(polynomial, y1, y2)
        total = 0
        for (i, j), coefficient in polynomial.terms():
            total += coefficient * squares[y1] ** (i // 2) * squares[y2] ** (j // 2) * y1 ** (i % 2) * y2 ** (j % 2)
        return Poly(total, x1, y1, x2, y2, b)

    def same(left, right):
        return (reduced(left) - reduced(right)).is_zero

    # Both finite, x1 != x2: the chord's sum, with h = x1 - x2 cleared from the denominators.
    sx, sy, sz = complete_sum((x1, y1, 1), (x2, y2, 1), b)
    h, r = x1 - x2, y1 - y2
    chord_x = r**2 - (x1 + x2) * h**2  # times h^2
    chord_y = r * (x1 * h**2 - chord_x) - y1 * h**3  # times h^3
    assert same(sx * h**2, chord_x * sz) and same(sy * h**3, chord_y * sz)
    # sz is h^3 times y(P1 - P2), which is not zero: the order is odd, and P1 - P2 is not at infinity.
    r = y1 + y2
    minus_x = r**2 - (x1 + x2) * h**2
    minus_y = r * (x1 * h**2 - minus_x) - y1 * h**3
    assert same(sz, minus_y) or same(sz, -minus_y)
    # Equal points: the tangent's sum, and sz is 8 y^3, which is not zero.
    sx, sy, sz = complete_sum((x1, y1, 1), (x1, y1, 1), b)
    slope = 3 * x1**2 - 3  # times 2 y
    double_x = slope**2 - 8 * x1 * y1**2  # times (2 y)^2
    double_y = slope * (4 * x1 * y1**2 - double_x) - 8 * y1**4  # times (2 y)^3
    assert same(sz, 8 * y1**3)
    assert same(sx * 4 * y1**2, double_x * sz) and same(sy, double_y)
    # Opposite points: infinity, and its y is, up to its sign, y(2 P) (2 y)^3, which is not zero.
    sx, sy, sz = complete_sum((x1, y1, 1), (x1, -y1, 1), b)
    assert same(sx, 0) and same(sz, 0)
    assert same(sy, double_y) or same(sy, -double_y)
    # Infinity and a point: the point, up to the factor y1^2 or its like, which is not zero; infinity twice.
    for p, q in (((x1, y1, 1), (0, 1, 0)), ((0, 1, 0), (x1, y1, 1))):
        sx, sy, sz = complete_sum(p, q, b)
        assert same(sx, x1 * sz) and same(sy, y1 * sz) and same(sz, y1)
    assert complete_sum((0, 1, 0), (0, 1, 0), b) == (0, 1, 0)
    print("the sums of lanes are right for all points")


def check_comb():
    """The digits make up the scalar, and no addition in a lane is of equal or opposite points."""
    steps, lanes = 13, 4
    windows = steps * lanes

    def digits(k):
        half = (k - 1) // 2 + 2**259
        return [2 * (half >> 5 * i & 31) - 31 for i in range(windows)]

    # The sum of 2 v 32^i is k - 1 + 2^260, and that of 31 32^i is 2^260 - 1.
    assert sum(31 * 32**i for i in range(windows)) == 2**260 - 1 and 5 * windows == 260
    # (k - 1) / 2 is below 2^255, so that it leaves the last digit, bits 255 to 259, as it is: 16, and d = 1.
    assert (N - 1) // 2 < 2**255
    special = N - 2 * (N % 2**130)
    for k in [1, 3, N - 2, 2**255 - 1, 2**255 + 1, special] + [pow(3, i, N) | 1 for i in range(1000)]:
        k = k if k % 2 and k < N else 1
        d = digits(k)
        assert sum(d * 32**i for i, d in enumerate(d)) == k and d[-1] == 1
    # In a lane, before the digit of step i: an odd multiple of 32^(i+1), of at most `most`.
    for i in range(steps - 1):
        most = sum(31 * 32**j for j in range(i + 1, steps))
        added = 31 * 32**i
        # As integers, they are neither equal nor opposite, since the first is the larger one; and modulo n neither, since
        # their sum and difference are below n. The lane's factor 2^(65 lane) is not zero modulo n, and cancels.
        assert 32 ** (i + 1) > added and most + added < N
    # The last sum has an exception for other formulas: two equal halves.
    low = sum(d * 32**i for i, d in enumerate(digits(special)[:26]))
    high = sum(d * 32**i for i, d in enumerate(digits(special)) if i >= 26)
    assert low + high == special and (low - high) % N == 0
    print("the comb's digits make up any scalar, and its incomplete additions meet no exception")


if __name__ == "__main__":
    check_constants()
    check_reductions()
    check_affine_sums()
    check_comb()
    check_complete_sums()
