#!/usr/bin/env python3
"""Writes activations.inc: activations and their derivatives, by mpmath, at arguments that sweep the
whole range of f64: from the smallest subnormal number to the largest finite one, both signs.

    python3 activations.py > activations.inc        (needs mpmath)

A row is an argument, the function of it and the derivative: at x or, for the functions whose gradient
kiln.h takes from y, as the function of y that it is. Values have 19 digits, more than f64 holds. An
argument outside of a function's domain has no row.
"""
import random

import mpmath as mp

mp.mp.prec = 400
LARGEST = mp.mpf(2) ** 1024
random.seed(7)


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def softplus(x):
    return mp.log1p(mp.exp(-abs(x))) + max(x, mp.mpf(0))


GELU_SLOPE = mp.sqrt(2 / mp.pi)
CUBIC = mp.mpf("0.044715")


def gelu_tanh(x):
    return x * sigmoid(2 * GELU_SLOPE * (x + CUBIC * x**3))


def gelu_tanh_slope(x):
    t = 2 * GELU_SLOPE * (x + CUBIC * x**3)
    return sigmoid(t) * (1 + x * sigmoid(-t) * 2 * GELU_SLOPE * (1 + 3 * CUBIC * x**2))


def normal(x):
    if abs(x) > 1000:  # where it is 0 or 1 to hundreds of digits, and mp.erfc overflows
        return mp.mpf(x > 0)
    return mp.erfc(-x / mp.sqrt(2)) / 2


def mish_slope(x):
    inner = softplus(x)
    return mp.tanh(inner) + x * sigmoid(x) / mp.cosh(inner) ** 2


def hard_swish_slope(x):
    return mp.mpf(0) if x <= -3 else mp.mpf(1) if x >= 3 else (2 * x + 3) / 6


def leaky_relu(x):
    return x if x > 0 else x / 4


def hard_sigmoid(x):
    return min(max(x / 4 + mp.mpf(0.5), 0), 1)


def between(low, high):
    return lambda x: mp.mpf(low < x < high)


def always(x):
    return True


def not_negative(x):
    return x >= 0


def positive(x):
    return x > 0


def magnitude_below(bound):
    return lambda x: abs(x) < bound


# name, kilnActivationMode_t, coef, coef2, f, domain of f, derivative, domain of the derivative
FUNCTIONS = [
    ("sigmoid", "SIGMOID", 0, 0, sigmoid, always, lambda y: y * (1 - y), magnitude_below(1.01)),
    ("tanh", "TANH", 0, 0, mp.tanh, always, lambda y: 1 - y * y, magnitude_below(1.01)),
    ("elu", "ELU", 0.75, 0, lambda x: x if x > 0 else mp.mpf(0.75) * mp.expm1(x), always,
     lambda y: 1 if y > 0 else y + mp.mpf(0.75), lambda y: y >= -0.75),
    ("gelu_erf", "GELU_ERF", 0, 0, lambda x: x * normal(x), always,
     lambda x: normal(x) + x * mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), always),
    ("gelu_tanh", "GELU_TANH", 0, 0, gelu_tanh, always, gelu_tanh_slope, always),
    ("silu", "SILU", 0, 0, lambda x: x * sigmoid(x), always,
     lambda x: sigmoid(x) * (1 + x * sigmoid(-x)), always),
    ("softplus", "SOFTPLUS", 0, 0, softplus, always, sigmoid, always),
    ("hard_swish", "HARD_SWISH", 0, 0, lambda x: x * min(max(x + 3, 0), 6) / 6, always,
     hard_swish_slope, always),
    ("exp", "EXP", 0, 0, mp.exp, always, lambda y: y, positive),
    ("log", "LOG", 0, 0, mp.log, positive, lambda x: 1 / x, positive),
    ("sqrt", "SQRT", 0, 0, mp.sqrt, not_negative, lambda y: 1 / (2 * y), positive),
    ("pow_root", "POW", 1, 0.5, mp.sqrt, not_negative,
     lambda x: mp.mpf(0.5) / mp.sqrt(x), positive),
    ("pow_cube", "POW", 1.25, 3, lambda x: mp.mpf(1.25) * x**3, always,
     lambda x: mp.mpf(3.75) * x**2, always),
    ("pow_inverse", "POW", 2, -1.75, lambda x: 2 * x ** mp.mpf(-1.75), positive,
     lambda x: mp.mpf(-3.5) * x ** mp.mpf(-2.75), positive),
    ("mish", "MISH", 0, 0, lambda x: x * mp.tanh(softplus(x)), always, mish_slope, always),
    ("identity", "IDENTITY", 0, 0, lambda x: x, always, lambda y: 1, always),
    ("relu", "RELU", 0, 0, lambda x: max(x, 0), always, between(0, mp.inf), always),
    ("clipped_relu", "CLIPPED_RELU", 6, 0, lambda x: min(max(x, 0), 6), always, between(0, 6), always),
    ("leaky_relu", "LEAKY_RELU", 0.25, 0, leaky_relu, always, lambda y: 1 if y > 0 else mp.mpf(0.25), always),
    ("square", "SQUARE", 0, 0, lambda x: x * x, always, lambda x: 2 * x, always),
    ("abs_value", "ABS", 0, 0, abs, always, mp.sign, always),
    ("hard_sigmoid", "HARD_SIGMOID", 0.25, 0.5, hard_sigmoid, always,
     lambda x: between(-2, 2)(x) / 4, always),
    ("clip", "CLIP", -1, 2, lambda x: min(max(x, -1), 2), always, between(-1, 2), always),
    ("linear", "LINEAR", 1.5, -2, lambda x: mp.mpf(1.5) * x - 2, always, lambda y: mp.mpf(1.5), always),
]


def arguments():
    """f64 numbers; most of them also exist in the smaller types."""
    out = {0.0, 2.0**-149, 2.0**-1074, 2.0**1023 * (2 - 2.0**-52), 2.0**127 * (2 - 2.0**-23)}
    # Every exponent of f16, many of f32, some of f64.
    exponents = list(range(-24, 17, 2)) + list(range(-149, 128, 12)) + list(range(-1074, 1024, 140))
    for exponent in exponents:
        out.add((1 + random.randrange(16) / 16) * 2.0**exponent)
    # Where functions bend, and along their tails.
    for numerator in list(range(1, 32, 3)) + list(range(33, 128, 7)) + list(range(129, 255, 13)):
        out.add(numerator / 8.0)
    out.update(float(n) for n in range(32, 113, 4))
    out.update((3.0, 88.5, 89.0, 89.5, 103.0, 104.0))
    for _ in range(10):
        out.add(round(random.uniform(0, 16) * 2**18) / 2.0**18)
        out.add(round(random.uniform(16, 110) * 2**16) / 2.0**16)
        out.add(random.uniform(0, 40))
    for _ in range(8):
        out.add(random.uniform(40, 760))
    return sorted(out | {-x for x in out})


def hex_of(x):
    digits, exponent = x.hex().split("p")
    return digits.rstrip("0").rstrip(".") + "p" + exponent if "." in digits else x.hex()


def text(value):
    value = mp.mpf(value)
    if value == 0 or abs(value) < mp.mpf(2) ** -1090:
        return "0"
    if abs(value) >= LARGEST:
        return "most" if value > 0 else "-most"
    return mp.nstr(value, 19, min_fixed=0, max_fixed=0).replace(".0e", "e") + "L"


def main():
    print("// Written by activations.py. {x, f(x), f'}; `none` is outside of the domain, `most` beyond f64.")
    points = arguments()
    for name, _, _, _, f, domain, slope, slope_domain in FUNCTIONS:
        print(f"const Row {name}[] = {{")
        for x in points:
            inside, slope_inside = domain(x), slope_domain(x)
            if not inside and not slope_inside:
                continue
            value = text(f(mp.mpf(x))) if inside else "none"
            derivative = text(slope(mp.mpf(x))) if slope_inside else "none"
            print(f"    {{{hex_of(x)}, {value}, {derivative}}},")
        print("};")
    print("const Group groups[] = {")
    for name, mode, coef, coef2, *_ in FUNCTIONS:
        print(f"    {{{{KILN_ACTIVATION_{mode}, {coef}, {coef2}}}, {name}}},")
    print("};")


main()
