"""kiln.arrays on NumPy's arrays, and on those of every other library that is installed, without PyTorch.

Exits with 77, which CTest counts as skipped, where there is no NumPy.
"""

import importlib.util
import os
import pathlib
import re
import sys
import threading
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
if not os.environ.get("KILN_TEST_INSTALLED"):  # then the package is the installed one
    sys.path.insert(0, str(ROOT / "src" / "python"))

try:
    import numpy as np
except ImportError:
    print(f"skipped: {sys.executable} has no NumPy")
    sys.exit(77)

from kiln import arrays
from kiln.arrays import _functions

generator = np.random.default_rng()


def random(*sizes, dtype=np.float64):
    return generator.standard_normal(sizes).astype(dtype)


def taps(x, w, g):
    """(output place, tap, padded x) of a two-dimensional convolution by definition."""
    s, p, d = g.get("stride", 1), g.get("padding", 0), g.get("dilation", 1)
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    out = [(padded.shape[2 + i] - (w.shape[2 + i] - 1) * d - 1) // s + 1 for i in range(2)]
    for r in range(w.shape[2]):
        for q in range(w.shape[3]):
            window = padded[:, :, r * d : r * d + s * (out[0] - 1) + 1 : s, q * d : q * d + s * (out[1] - 1) + 1 : s]
            yield r, q, window


def forward(x, w, **g):
    """In f64, group by group."""
    groups = g.get("groups", 1)
    x, w = x.astype(np.float64), w.astype(np.float64)
    parts = []
    for xs, ws in zip(np.split(x, groups, 1), np.split(w, groups, 0)):
        parts.append(sum(np.einsum("nchw,kc->nkhw", window, ws[:, :, r, q]) for r, q, window in taps(xs, ws, g)))
    return np.concatenate(parts, 1)


def bilinear(x, w, dy, **g):
    """sum(dy * convolution(x, w)), whose derivatives the gradients are."""
    return float((dy.astype(np.float64) * forward(x, w, **g)).sum())


class Foreign:
    """An array of another library."""

    def __init__(self, **interface):
        vars(self).update(interface)


class Operations(unittest.TestCase):
    geometry = dict(stride=2, padding=1, dilation=1, groups=2)

    def test_forward_with_all_that_follows(self):
        x, w, b = random(2, 4, 7, 6), random(6, 2, 3, 3), random(6)
        want = forward(x, w, **self.geometry)
        np.testing.assert_allclose(arrays.convolution(x, w, **self.geometry), want, atol=1e-12)
        residual = random(*want.shape)
        y = arrays.convolution(x, w, bias=b, residual=residual, activation="relu", **self.geometry)
        np.testing.assert_allclose(y, np.maximum(want + b[:, None, None] + residual, 0), atol=1e-12)
        self.assertIs(type(y), np.ndarray)
        self.assertTrue(y.flags.c_contiguous)

    def test_locally_connected_layers(self):
        x, w, b = random(2, 3, 6, 5), random(4, 3, 2, 3, 3, 3), random(2, 4, 3)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        want = np.einsum("ncpqrs,pqkcrs->nkpq", windows, w)
        np.testing.assert_allclose(arrays.local(x, w, bias=b), want + b, atol=1e-12)
        dy = random(*want.shape)
        dw = arrays.local_filter_gradient(x, dy, w.shape)
        np.testing.assert_allclose(dw, np.einsum("ncpqrs,nkpq->pqkcrs", windows, dy), atol=1e-12)
        dx, direction = arrays.local_data_gradient(dy, w, x.shape), random(*x.shape)
        self.assertAlmostEqual((dx * direction).sum(), (dy * arrays.local(direction, w)).sum(), places=9)
        # Of each image's own, and a view of another order.
        own = random(2, 4, 3, 3, 3, 3, 2).transpose(0, 1, 2, 6, 5, 3, 4)
        want = np.einsum("ncpqrs,npqkcrs->nkpq", windows, own)
        np.testing.assert_allclose(arrays.local(x, own, bias=b[:, 0, 0]), want + b[:, :1, :1], atol=1e-12)
        with self.assertRaisesRegex(ValueError, "w has sizes"):
            arrays.local(x, random(2, 3, 3, 3))

    def test_products_of_matrices(self):
        a, b, bias, z = random(5, 8), random(8, 6), random(6), random(5, 6)
        np.testing.assert_allclose(arrays.matmul(a, b), a @ b)
        np.testing.assert_allclose(arrays.matmul(b.T, a.T), b.T @ a.T)
        y = arrays.matmul(a, b, bias=bias, residual=z, activation="relu")
        np.testing.assert_allclose(y, np.maximum(a @ b + bias + z, 0))
        several = random(3, 5, 8)
        np.testing.assert_allclose(arrays.matmul(several, b[None], bias=bias), several @ b + bias)
        half = arrays.matmul(a.astype(np.float16), b.astype(np.float16), out=np.empty((6, 5), np.float16).T)
        np.testing.assert_allclose(half, a.astype(np.float16) @ b.astype(np.float16), atol=0.05)
        with self.assertRaisesRegex(RuntimeError, "b has sizes 5x8, so 5 rows; expected 8, the columns of a"):
            arrays.matmul(a, a)
        with self.assertRaisesRegex(ValueError, r"b has sizes \(3, 5, 8\); expected 2 of them"):
            arrays.matmul(a, several)
        with self.assertRaisesRegex(ValueError, r"a has sizes \(6,\); expected 2, rows and columns"):
            arrays.matmul(bias, b)

    def test_gradients(self):
        x, w = random(2, 4, 7, 6), random(6, 2, 3, 3)
        dy = random(*forward(x, w, **self.geometry).shape)
        dx = arrays.data_gradient(dy, w, x.shape, **self.geometry)
        dw = arrays.filter_gradient(x, dy, w.shape, **self.geometry)
        for _ in range(3):  # both are linear: along any direction the derivative is the difference
            ex, ew = random(*x.shape), random(*w.shape)
            self.assertAlmostEqual((dx * ex).sum(), bilinear(ex, w, dy, **self.geometry), places=9)
            self.assertAlmostEqual((dw * ew).sum(), bilinear(x, ew, dy, **self.geometry), places=9)
        np.testing.assert_allclose(arrays.bias_gradient(dy), dy.sum((0, 2, 3)), atol=1e-12)

    def test_transposed(self):
        x, w = random(2, 4, 3, 4), random(4, 3, 3, 3)
        y = arrays.convolution_transposed(x, w, stride=2, padding=1, output_padding=1, groups=2)
        self.assertEqual(y.shape, (2, 6, 6, 8))
        e = random(*y.shape)
        want = (forward(e, w, stride=2, padding=1, groups=2) * x).sum()
        self.assertAlmostEqual((y * e).sum(), want, places=9)

    def test_padding_in_words(self):
        # "same" by PyTorch's rule: where the sum is odd, one element more after.
        x, w = random(2, 3, 7, 6), random(4, 3, 2, 3)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 2)))
        g = dict(padding="same", dilation=(3, 2))
        want = arrays.convolution(padded, w, dilation=(3, 2))
        self.assertEqual(want.shape, (2, 4, 7, 6))
        np.testing.assert_allclose(arrays.convolution(x, w, **g), want, atol=1e-12)
        dy = random(*want.shape)
        np.testing.assert_allclose(arrays.filter_gradient(x, dy, w.shape, **g),
                                   arrays.filter_gradient(padded, dy, w.shape, dilation=(3, 2)), atol=1e-12)
        np.testing.assert_allclose(arrays.data_gradient(dy, w, x.shape, **g),
                                   arrays.data_gradient(dy, w, padded.shape, dilation=(3, 2))[:, :, 1:-2, 2:-2], atol=1e-12)
        np.testing.assert_array_equal(arrays.convolution(x, w, padding="valid"), arrays.convolution(x, w))
        own = np.ascontiguousarray(np.broadcast_to(w, (7, 6, *w.shape)))
        np.testing.assert_allclose(arrays.local(x, own, **g), want, atol=1e-12)
        whole = arrays.local_filter_gradient(x, dy, own.shape, **g)
        np.testing.assert_allclose(whole.sum((0, 1)), arrays.filter_gradient(x, dy, w.shape, **g), atol=1e-12)
        np.testing.assert_allclose(arrays.local_data_gradient(dy, own, x.shape, **g),
                                   arrays.data_gradient(dy, w, x.shape, **g), atol=1e-12)
        for error, words, call in (
            (ValueError, "padding is 'full'; expected integers, 'same' or 'valid'", lambda: arrays.convolution(x, w, padding="full")),
            (ValueError, r"padding is 'same' and stride \(1, 2\)", lambda: arrays.convolution(x, w, padding="same", stride=(1, 2))),
            (TypeError, "padding is 'same'; expected integers", lambda: arrays.convolution_transposed(x, random(3, 1, 2, 2), padding="same")),
        ):
            with self.assertRaisesRegex(error, words):
                call()

    def test_types_and_dimensions(self):
        for dtype, error in ((np.float32, 1e-5), (np.float16, 5e-3)):
            x, w = random(1, 3, 5, 5, dtype=dtype), random(2, 3, 3, 3, dtype=dtype)
            y = arrays.convolution(x, w, padding=1)
            self.assertEqual(y.dtype, dtype)
            np.testing.assert_allclose(y.astype(np.float64), forward(x, w, padding=1), atol=error * 10)
        x, w = random(1, 3, 1, 9), random(2, 3, 1, 3)
        want = forward(x, w)
        np.testing.assert_allclose(arrays.convolution(x[:, :, 0], w[:, :, 0]), want[:, :, 0], atol=1e-12)
        np.testing.assert_allclose(arrays.convolution(x[:, :, None], w[:, :, None]), want[:, :, None], atol=1e-12)

    def test_strides_and_out(self):
        base = random(2, 9, 8, 6)
        x = base.transpose(0, 3, 1, 2)[:, ::2, 1:, :]  # channels last, every other channel, a window
        w = random(3, 3, 3, 3).transpose(1, 0, 3, 2)
        want = forward(x, w)
        frame = np.full((2, 3, want.shape[2] + 2, want.shape[3] + 2), np.nan)
        out = frame[:, :, 1:-1, 1:-1]
        self.assertIs(arrays.convolution(x, w, out=out), out)
        np.testing.assert_allclose(out, want, atol=1e-12)
        self.assertTrue(np.isnan(frame[:, :, 0]).all() and np.isnan(frame[:, :, :, -1]).all())

    def test_what_is_wrong_is_named(self):
        x, w = random(1, 2, 4, 4), random(3, 2, 3, 3)
        locked = np.empty((1, 3, 2, 2))
        locked.flags.writeable = False
        convolution = arrays.convolution
        for error, words, call in (
            (TypeError, "x is a list; expected an array with", lambda: convolution([1], w)),
            (ValueError, "x is of int64; expected one of float32,", lambda: convolution(np.ones((1, 2, 4, 4), np.int64), w)),
            (ValueError, "w is of float32; expected float64, as x", lambda: convolution(x, w.astype(np.float32))),
            (ValueError, "x has negative strides", lambda: convolution(x[..., ::-1], w)),
            (ValueError, r"x has sizes \(2,\); expected 3 to 5", lambda: convolution(random(2), w)),
            (ValueError, "stride has 3 values; expected 1 or 2", lambda: convolution(x, w, stride=(1, 1, 1))),
            (ValueError, r"bias has sizes \(2,\); expected \(3,\)", lambda: convolution(x, w, bias=random(2))),
            (ValueError, r"out has sizes \(1, 3, 1, 1\); expected \(1, 3, 2, 2\)", lambda: convolution(x, w, out=random(1, 3, 1, 1))),
            (ValueError, "out is a ndarray that may not be written to", lambda: convolution(x, w, out=locked)),
            (ValueError, "activation is 'rlu'; expected one of identity,", lambda: convolution(x, w, activation="rlu")),
            (ValueError, "math is 'fast'; expected one of default,", lambda: convolution(x, w, math="fast")),
            (RuntimeError, "kilnGetConvolutionForwardOutputDim", lambda: convolution(x, random(3, 5, 3, 3))),
        ):
            with self.assertRaisesRegex(error, words):
                call()

    def test_integers_that_cross_into_c(self):
        x, w = random(1, 2, 4, 4), random(4, 2, 3, 3)
        for error, words, call in (
            (ValueError, "stride is 18446744073709551617; expected", lambda: arrays.convolution(x, w, stride=2**64 + 1)),
            (ValueError, "groups is 18446744073709551617; expected", lambda: arrays.convolution(x, w, groups=2**64 + 1)),
            (TypeError, "padding is 1.5; expected an integer", lambda: arrays.convolution(x, w, padding=(1.5, 1))),
            (TypeError, "stride is 'same'", lambda: arrays.convolution(x, w, stride="same")),
            (TypeError, "sizes is 1.0", lambda: arrays.data_gradient(random(1, 4, 2, 2), w, (1.0, 2, 4, 4))),
            (ValueError, "sizes is -1", lambda: arrays.data_gradient(random(1, 4, 2, 2), w, (-1, 2, 4, 4))),
            (ValueError, "stream is -1", lambda: arrays.convolution(x, w, stream=-1)),
            (ValueError, "x is of complex128; expected one of float32,", lambda: arrays.convolution(x + 0j, w + 0j)),
        ):
            with self.assertRaisesRegex(error, words):
                call()
        want = arrays.convolution(x, w, stride=2, padding=1, groups=1)
        got = arrays.convolution(x, w, stride=np.int64(2), padding=np.array([1, 1]), groups=np.int8(1))
        np.testing.assert_array_equal(got, want)

    def test_what_a_foreign_array_says_of_itself(self):
        w = random(3, 2, 3, 3)
        right = np.zeros((1, 2, 4, 4)).__array_interface__
        for error, words, change in (
            (ValueError, "4 sizes and 2 strides", dict(strides=(32, 8))),
            (TypeError, "x's sizes is '1244'", dict(shape="1244")),
            (TypeError, "x's sizes is '4'; expected an integer", dict(shape=(1, 2, 4, "4"))),
            (ValueError, "x's sizes is -4", dict(shape=(1, 2, 4, -4))),
            (ValueError, "without 'data'", dict(data=None)),
            (ValueError, "whose data is 5", dict(data=5)),
            (ValueError, "and no memory", dict(data=(0, False))),
            (ValueError, "x's address is -8", dict(data=(-8, False))),
        ):
            with self.assertRaisesRegex(error, words):
                arrays.convolution(Foreign(__array_interface__={**right, **change}), w)

    def test_handles_end_with_their_threads(self):
        x, w = random(1, 1, 4, 4), random(1, 1, 3, 3)
        destroyed, destroy = [], _functions._Handles.__del__
        with unittest.mock.patch.object(_functions._Handles, "__del__", lambda self: (destroyed.append(self.handles), destroy(self))):
            for _ in range(3):
                thread = threading.Thread(target=lambda: arrays.convolution(x, w))
                thread.start()
                thread.join()
        self.assertEqual([len(handles) for handles in destroyed], [1, 1, 1])

    def test_the_stream_that_a_gpu_array_names(self):
        driver = unittest.mock.MagicMock()
        for name in ("cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"):
            getattr(driver, name).return_value = 0
        interface = dict(shape=(1, 1, 2, 2), typestr="<f4", data=(4096, False), version=3)
        waits = lambda stream, named: (
            driver.reset_mock(),
            arrays._buffers.buffer_of(Foreign(__cuda_array_interface__={**interface, "stream": named}), "x", stream),
            [(call.args[1].value) for call in driver.cuEventRecord.mock_calls],
            [(call.args[0].value or 0) for call in driver.cuStreamWaitEvent.mock_calls],
        )[2:]
        with unittest.mock.patch.object(arrays._buffers, "_driver", lambda: driver):
            self.assertEqual(waits(7, 8192), ([8192], [7]))
            self.assertEqual(waits(0, 2), ([2], [0]))
            for stream, named in ((7, None), (7, 7), (0, 1)):  # nothing to wait for
                self.assertEqual(waits(stream, named), ([], []))
            with self.assertRaisesRegex(ValueError, "stream is 0, which its protocol forbids"):
                waits(7, 0)
            driver.cuStreamWaitEvent.return_value = 400
            with self.assertRaisesRegex(RuntimeError, "the stream of x cannot be waited for .the driver's error 400"):
                waits(7, 8192)

    def test_numbers_are_the_headers(self):
        text = "".join(path.read_text() for path in (ROOT / "include" / "kiln").glob("*.h"))
        values = {name: int(value) for name, value in re.findall(r"\b(KILN_\w+) = (\d+)", text)}
        names = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}
        for dtype, number in _functions.TYPES.items():
            self.assertEqual(number, values["KILN_DATA_" + names[dtype]])
        for math, number in _functions.MATH.items():
            self.assertEqual(number, values["KILN_MATH_" + math.upper()])
        for name, (number, _) in _functions.ACTIVATIONS.items():
            self.assertEqual(number, values["KILN_ACTIVATION_" + {"gelu": "GELU_ERF"}.get(name, name.upper())])
        self.assertEqual(_functions.CROSS_CORRELATION, values["KILN_CROSS_CORRELATION"])
        self.assertEqual((arrays._buffers.CUDA, arrays._buffers.HOST), (values["KILN_DEVICE_CUDA"], values["KILN_DEVICE_HOST"]))


class Libraries(unittest.TestCase):
    """The same numbers in other libraries' arrays, on the GPU if they find one."""

    def check(self, convert, library):
        x, w, b = random(2, 3, 6, 6, dtype=np.float32), random(4, 3, 3, 3, dtype=np.float32), random(4, dtype=np.float32)
        want = np.maximum(forward(x, w, padding=1) + b[:, None, None], 0)
        y = arrays.convolution(convert(x), convert(w), bias=convert(b), padding=1, activation="relu")
        self.assertEqual(type(y).__module__.split(".")[0], library)
        back = y.get() if hasattr(y, "get") else y.copy_to_host() if hasattr(y, "copy_to_host") else np.asarray(y)
        np.testing.assert_allclose(back, want, atol=1e-4)
        dw = arrays.filter_gradient(convert(x), y, w.shape, padding=1)
        self.assertEqual(tuple(dw.shape), w.shape)
        return y

    def needs(self, library):
        if importlib.util.find_spec(library) is None:
            self.skipTest(f"{library} is not installed")
        return __import__(library)

    def test_jax(self):
        jax = self.needs("jax")
        y = self.check(jax.numpy.asarray, "jaxlib")
        self.assertAlmostEqual(float((y + 1).mean()), float(y.mean()) + 1, places=4)
        with self.assertRaisesRegex(ValueError, "may not be written to"):
            arrays.bias_gradient(y, out=jax.numpy.zeros(4))
        half = jax.numpy.ones((1, 1, 3, 3), jax.numpy.bfloat16)
        self.assertEqual(float(arrays.convolution(half, half)[0, 0, 0, 0]), 9.0)

    def test_cupy(self):
        cupy = self.needs("cupy")
        if cupy.cuda.runtime.getDeviceCount() == 0:
            self.skipTest("CuPy finds no GPU")
        self.check(cupy.asarray, "cupy")
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            x = cupy.ones((1, 1, 3, 3))
            y = arrays.convolution(x, x, stream=stream.ptr)
            self.assertEqual(float(y[0, 0, 0, 0]), 9.0)

    def test_numba(self):
        numba = self.needs("numba")
        from numba import cuda

        if not cuda.is_available():
            self.skipTest("numba finds no GPU")
        self.check(cuda.to_device, "numba")

    def test_torch(self):
        torch = self.needs("torch")
        device = "cuda" if torch.cuda.is_available() else "cpu"
        x = torch.ones(1, 1, 3, 3, device=device)
        y = arrays.convolution(x, x)
        self.assertEqual((y.item(), y.device.type), (9.0, device))
        self.assertIs(arrays.convolution(x, 2 * x, out=y), y)
        with self.assertRaisesRegex(ValueError, "x is a view with its sign changed"):
            arrays.convolution(torch._neg_view(x), x)
        self.assertEqual(y.item(), 18.0)
        if device == "cpu":
            self.check(torch.from_numpy, "torch")


if __name__ == "__main__":
    unittest.main(verbosity=2)
