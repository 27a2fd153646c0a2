"""What networks of video and audio need of convolutions: padding by side, caches, states. Beside F.pad and PyTorch's
convolutions in f64."""

import random
import unittest

import torch
import torch._dynamo.testing
import torch.nn.functional as F
import torch.utils.flop_counter
from support import assert_close, assert_same_strides, counts, full_only, run

import kiln.torch
from kiln.torch import _cached
from kiln.torch._activations import ACTIVATIONS

PLAIN = (F.conv1d, F.conv2d, F.conv3d)
OURS = (kiln.torch.conv1d, kiln.torch.conv2d, kiln.torch.conv3d)
CACHED = (kiln.torch.conv1d_cached, kiln.torch.conv2d_cached, kiln.torch.conv3d_cached)
CAUSAL = (kiln.torch.CausalConv1d, kiln.torch.CausalConv2d, kiln.torch.CausalConv3d)
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def double(*sizes):
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def laid_out(tensor, last):
    if not last or tensor.dim() not in LAST:
        return tensor
    return tensor.detach().to(memory_format=LAST[tensor.dim()]).requires_grad_()


def padded(x, sides, modes=None):
    """The input padded one dimension after the other, by the mode of each."""
    for i, (before, after) in enumerate(sides):
        pad = [0] * (2 * len(sides))
        pad[2 * (len(sides) - 1 - i)], pad[2 * (len(sides) - 1 - i) + 1] = before, after
        mode = "zeros" if modes is None else modes[i]
        x = F.pad(x, pad, "constant" if mode == "zeros" else mode)
    return x


class Draw:
    """A convolution with random sizes and geometry."""

    def __init__(self, source, spatial, causal=False):
        self.spatial, self.groups = spatial, source.choice((1, 1, 2))
        self.taps = [source.randint(2 if causal and i == 0 else 1, 3) for i in range(spatial)]
        self.dilation = [source.randint(1, 2) for _ in range(spatial)]
        self.extents = [(t - 1) * d + 1 for t, d in zip(self.taps, self.dilation)]
        self.stride = [source.randint(1, 2) for _ in range(spatial)]
        self.sides = [(source.randint(0, 2), source.randint(0, 2)) for _ in range(spatial)]
        self.sizes = [max(e, source.randint(3, 6)) for e in self.extents]
        self.channels, self.filters = self.groups * source.randint(1, 3), self.groups * source.randint(1, 2)
        if causal:
            self.stride[0] = min(self.stride[0], self.extents[0])
            self.sides[0] = (self.extents[0] - 1, 0)
        self.x = laid_out(double(2, self.channels, *self.sizes), source.random() < 0.5)
        self.w, self.b = double(self.filters, self.channels // self.groups, *self.taps), double(self.filters)

    def arguments(self):
        return dict(stride=self.stride, dilation=self.dilation, groups=self.groups)

    def __str__(self):
        return f"{tuple(self.x.shape)} by {tuple(self.w.shape)}, {self.sides}, {self.arguments()}"


class Case(unittest.TestCase):
    def setUp(self):
        kiln.torch.clear()
        kiln.torch.set_policy("wait")
        self.addCleanup(kiln.torch.set_policy, "wait")
        self.addCleanup(setattr, _cached, "least_spared_bytes", _cached.least_spared_bytes)
        seed = random.randrange(1 << 30)
        torch.manual_seed(seed)
        self.source = random.Random(seed)
        print(f"seed {seed} ", end="", flush=True)

    def check(self, ours, theirs, *tensors, what="", strides=True):
        for got, want in zip(run(ours, *tensors), run(theirs, *tensors)):
            assert_close(self, got, want, what)
            if strides:
                assert_same_strides(self, got, want, what)


class Sides(Case):
    def draws(self, count):
        for i in range(count):
            draw = Draw(self.source, i % 3 + 1)
            ours = lambda x, w, b: OURS[draw.spatial - 1](x, w, b, padding=draw.sides, **draw.arguments())
            theirs = lambda x, w, b: PLAIN[draw.spatial - 1](padded(x, draw.sides), w, b, **draw.arguments())
            self.check(ours, theirs, draw.x, draw.w, draw.b, what=str(draw))

    def test_random_paddings(self):
        self.draws(6)
        self.assertEqual(counts()[1], 0)

    def test_random_paddings_that_pytorch_computes(self):
        kiln.torch.set_policy("native")
        self.draws(40)
        self.assertEqual(counts()[0], 0)

    def test_no_padded_copy_is_made(self):
        x, w = double(1, 2, 5, 4, 4), double(2, 2, 3, 3, 3)
        kiln.torch.conv3d(x, w, padding=((2, 0), 1, (1, 1)))
        problems = [row["problem"] for row in kiln.torch.report().rows]
        self.assertEqual(len(problems), 1)
        self.assertIn("id5ih4iw4", problems[0])
        self.assertIn("pd2ph1pw1", problems[0])
        kiln.torch.clear()
        kiln.torch.conv1d(x[0, :, 0], double(4, 4, 4), padding="same")  # one element before, two after
        self.assertIn("iw4_oc4ow4_kw4_sw1_pw1", kiln.torch.report().rows[0]["problem"])

    def test_gradients_against_differences(self):
        x, w, b = double(1, 2, 3, 3), double(2, 2, 2, 2), double(2)
        function = lambda x, w, b: kiln.torch.conv2d(x, w, b, padding=((1, 0), (0, 2)), activation="silu")
        self.assertTrue(torch.autograd.gradcheck(function, (x, w, b), fast_mode=True))
        self.assertTrue(torch.autograd.gradgradcheck(function, (x, w, b), fast_mode=True))
        want = torch.func.jacrev(lambda x: F.silu(F.conv2d(F.pad(x, (0, 2, 1, 0)), w, b)))(x)
        assert_close(self, torch.func.jacrev(lambda x: function(x, w, b))(x), want)

    def test_operators_are_sound(self):
        kiln.torch.conv1d(torch.ones(1, 1, 2), torch.ones(1, 1, 1))
        x, w, b, r = double(2, 2, 4, 4), double(4, 2, 3, 3), double(4), double(2, 4, 4, 3)
        geometry = ([1, 1], [2, 0, 0, 1], [1, 1], False, [0, 0], 1)
        tests = ("test_schema", "test_autograd_registration", "test_faketensor")
        ops = torch.ops.kiln
        for operand in (x, laid_out(x, True)):
            torch.library.opcheck(
                ops.convolution_bias_activation.default, (operand, w, b, r, *geometry, 709, 0.0), test_utils=tests
            )
            torch.library.opcheck(
                ops.convolution_backward.default, (r.detach(), operand, w, [4], *geometry, [True] * 3), test_utils=tests
            )
        out = torch.empty(2, 8, 4, 3, dtype=torch.float64)[:, ::2]
        arguments = (out, *(t.detach() for t in (x, w, b, r)), *geometry, 709, 0.0)
        torch.library.opcheck(ops.convolution_into.default, arguments, test_utils=("test_schema", "test_faketensor"))

    def test_into_a_part_of_a_tensor(self):
        kiln.torch.conv1d(torch.ones(1, 1, 2), torch.ones(1, 1, 1))
        x, w = (t.detach() for t in (double(2, 2, 4, 4), double(3, 2, 3, 3)))
        want = F.relu(F.conv2d(F.pad(x, (0, 1, 2, 0)), w))
        for policy in ("wait", "native"):
            kiln.torch.set_policy(policy)
            whole = torch.full((2, 3, 6, 3), 7.0, dtype=torch.float64)
            out = whole.narrow(2, 1, 4)
            torch.ops.kiln.convolution_into(out, x, w, None, None, [1, 1], [2, 0, 0, 1], [1, 1], False, [0, 0], 1, 702, 0.0)
            assert_close(self, out, want)
            self.assertTrue((whole[:, :, 0] == 7).all() and (whole[:, :, 5] == 7).all())

    def test_pytorchs_own_operator_takes_one_number_a_dimension(self):
        x, w = double(1, 1, 4, 4).detach(), double(1, 1, 3, 3).detach()
        with kiln.torch.enabled("wait", devices="cpu"), self.assertRaises(RuntimeError):
            torch.convolution(x, w, None, [1, 1], [1, 0, 0, 1], [1, 1], False, [0, 0], 1)

    def test_padding_modes(self):
        kiln.torch.set_policy("native")
        modes = ("zeros", "reflect", "replicate", "circular")
        for i in range(24):
            draw = Draw(self.source, i % 3 + 1)
            mode = [self.source.choice(modes) for _ in range(draw.spatial)]
            given = mode[0] if len(set(mode)) == 1 else mode
            ours = lambda x, w: OURS[draw.spatial - 1](x, w, padding=draw.sides, padding_mode=given, **draw.arguments())
            theirs = lambda x, w: PLAIN[draw.spatial - 1](padded(x, draw.sides, mode), w, **draw.arguments())
            self.check(ours, theirs, draw.x, draw.w, what=f"{draw}, {mode}", strides=False)

    def test_what_is_wrong_is_named(self):
        x, w = torch.ones(1, 2, 4, 4), torch.ones(3, 2, 3, 3)
        for words, arguments in (
            (r"padding has \(-1, 0\) for a dimension; expected 0 or more", dict(padding=((-1, 0), 1))),
            (r"padding has \(1, 0, 2\) for a dimension", dict(padding=((1, 0, 2), 1))),
            ("padding has 3 values or pairs; expected 2", dict(padding=((1, 0), 1, 1))),
            ("padding_mode is 'zero'; expected one of zeros", dict(padding_mode="zero")),
            ("padding_mode has 3 words; expected 1 or 2", dict(padding_mode=["zeros"] * 3)),
        ):
            with self.assertRaisesRegex(ValueError, words):
                kiln.torch.conv2d(x, w, **arguments)


def chunks_of(source, planes, stride, at_least):
    """Lengths that add up to ``planes``, the first no shorter than ``at_least``."""
    lengths = [at_least]
    while sum(lengths) < planes:
        lengths.append(min(planes - sum(lengths), source.randint(stride, 3 * stride)))
    return lengths


class Caches(Case):
    def stream(self, draw, lengths, update, activation="identity", residual=None):
        """The result of the chunks, one after the other, and the cache after each."""

        def function(x, w, b):
            cache, results, at = x.new_zeros(2, draw.channels, draw.extents[0] - 1, *draw.sizes[1:]), [], 0
            more = {} if draw.spatial == 1 else dict(padding=draw.sides[1:])
            for chunk in x.split(lengths, 2):
                y, cache = CACHED[draw.spatial - 1](
                    chunk, cache, w, b, activation=activation, update=update, **more, **draw.arguments()
                )
                results.append(y)
            return torch.cat(results, 2)

        return function

    def draws(self, count, least):
        _cached.least_spared_bytes = least
        for i in range(count):
            draw = Draw(self.source, i % 3 + 1, causal=True)
            stride = draw.stride[0]
            planes = draw.extents[0] + stride * self.source.randint(4, 7)
            draw.x = laid_out(double(2, draw.channels, planes, *draw.sizes[1:]), self.source.random() < 0.5)
            update = self.source.random() < 0.5
            if update:
                draw.x = draw.x.detach().narrow(2, 0, planes // stride * stride).requires_grad_()
            lengths = chunks_of(self.source, draw.x.shape[2], stride, stride)
            if update:
                lengths = [stride] * (draw.x.shape[2] // stride - 2) + [2 * stride]
                draw.x = draw.x.detach()  # a cache that is updated keeps no graph
            elif lengths[-1] < stride:
                lengths[-2:] = [lengths[-2] + lengths[-1]]
            name = self.source.choice(("identity", "silu", "relu"))
            activate = lambda y: ACTIVATIONS[name].apply(y, 0.0)
            theirs = lambda x, w, b: activate(PLAIN[draw.spatial - 1](padded(x, draw.sides), w, b, **draw.arguments()))
            ours = self.stream(draw, lengths, update, name)
            self.check(ours, theirs, draw.x, draw.w, draw.b, what=f"{draw}, {lengths}, {name}", strides=False)

    def test_random_streams(self):
        self.draws(3, 0)
        self.assertEqual(counts()[1], 0)

    def test_random_streams_that_pytorch_computes(self):
        kiln.torch.set_policy("native")
        for least in (0, 1 << 40):
            self.draws(30, least)
        self.assertEqual(counts()[0], 0)

    def test_a_stream_has_the_bits_of_the_whole(self):
        """Of numbers whose sums are exact in any order."""
        layer = kiln.torch.CausalConv3d(3, 4, 3, padding=1, activation="relu")
        for parameter in layer.parameters():
            parameter.data = torch.randint(-4, 5, parameter.shape).float()
        x = torch.randint(-8, 9, (1, 3, 9, 4, 5)).float()
        for last in (False, True):
            for least in (0, 1 << 40):
                _cached.least_spared_bytes = least
                x = laid_out(x, last).detach()
                with torch.no_grad():
                    cache, results = layer.first_cache(x), []
                    for chunk in x.split((1, 4, 4), 2):
                        y, cache = layer(chunk, cache, update=True)
                        results.append(y)
                    self.assertTrue(torch.equal(torch.cat(results, 2), layer(x)))

    def test_gradients_against_differences(self):
        x, cache, w, b, r = double(1, 2, 4, 3), double(1, 2, 1, 3), double(2, 2, 2, 2), double(2), double(1, 2, 4, 3)
        for least in (0, 1 << 40):
            _cached.least_spared_bytes = least
            function = lambda x, cache, w, b, r: kiln.torch.conv2d_cached(
                x, cache, w, b, padding=((1, 0),), activation="silu", residual=r
            )[0]
            operands = (x, cache, w, b, r)
            self.assertTrue(torch.autograd.gradcheck(function, operands, fast_mode=True))
            self.assertTrue(torch.autograd.gradgradcheck(function, operands, fast_mode=True))

    def test_operator_is_sound(self):
        kiln.torch.conv1d_cached(torch.ones(1, 1, 2), torch.ones(1, 1, 1), torch.ones(1, 1, 2))
        x, cache, w, b, r = double(2, 2, 5, 4), double(2, 2, 2, 4), double(4, 2, 3, 3), double(4), double(2, 4, 5, 5)
        tests = ("test_schema", "test_autograd_registration", "test_faketensor")
        for operand in (x, laid_out(x, True)):
            for least in (0, 1 << 40):
                _cached.least_spared_bytes = least
                arguments = (operand, cache, w, b, r, [1, 1], [0, 1, 0, 2], [1, 1], 1, 709, 0.0)
                torch.library.opcheck(torch.ops.kiln.convolution_cached.default, arguments, test_utils=tests)

    def test_flops(self):
        x, cache, w = torch.ones(2, 2, 5), torch.ones(2, 2, 2), torch.ones(4, 2, 3)
        with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
            kiln.torch.conv1d_cached(x, cache, w)
        self.assertEqual(counter.get_total_flops(), 2 * 2 * w.numel() * 5)

    def test_first_frame_repeated(self):
        kiln.torch.set_policy("native")
        x, w = double(2, 2, 4, 3, 3), double(3, 2, 3, 3, 3)
        layer = kiln.torch.CausalConv3d(2, 3, 3, padding=1, padding_mode=("replicate", "zeros", "circular")).double()
        theirs = lambda x, w: F.conv3d(padded(x, ((2, 0), (1, 1), (1, 1)), layer.padding_mode), w)
        ours = lambda x, w: kiln.torch.conv3d(x, w, padding=((2, 0), 1, 1), padding_mode=layer.padding_mode)
        self.check(ours, theirs, x, w, strides=False)
        layer.weight.data, layer.bias.data = w.data, torch.zeros_like(layer.bias)
        with torch.no_grad():
            cache, results = layer.first_cache(x), []
            for chunk in x.split((1, 3), 2):
                y, cache = layer(chunk, cache)
                results.append(y)
            assert_close(self, torch.cat(results, 2), theirs(x, w))
            assert_close(self, layer(x), theirs(x, w))

    def test_a_stream_without_a_batch(self):
        x, cache, w = double(2, 5), double(2, 2), double(3, 2, 3)
        want = F.conv1d(torch.cat((cache, x), 1), w)
        kept = cache.detach().clone()
        y, after = kiln.torch.conv1d_cached(x.detach(), kept, w, update=True)
        assert_close(self, y, want)
        self.assertIs(after, kept)
        self.assertTrue(torch.equal(kept, x[:, 3:]))

    def test_what_is_wrong_is_named(self):
        x, w, cache = torch.ones(1, 2, 4, 3), torch.ones(3, 2, 3, 3), torch.ones(1, 2, 2, 3)
        call = kiln.torch.conv2d_cached
        for words, function in (
            (r"cache has sizes \(1, 2, 2, 4\); expected \(1, 2, planes, 3\)", lambda: call(x, torch.ones(1, 2, 2, 4), w)),
            (r"cache has sizes \(1, 2, 2\)", lambda: call(x, cache[..., 0], w)),
            ("cache is of torch.float64; expected torch.float32", lambda: call(x, cache.double(), w)),
            ("cache is on meta; expected cpu", lambda: call(x, cache.to("meta"), w)),
            ("cache has the layout torch.sparse_coo", lambda: call(x, cache.to_sparse(), w)),
            ("cache has 3 planes; expected at most 2", lambda: call(x, torch.ones(1, 2, 3, 3), w)),
            ("input has 0 planes; expected 1 or more", lambda: call(x[:, :, :0], cache, w)),
            ("cache and input have 2 planes; expected 3 or more", lambda: call(x[:, :, :1], cache[:, :, :1], w)),
            ("stride is 4 in the first dimension; expected at most 3", lambda: call(x, cache, w, stride=4)),
            ("padding has 2 values or pairs; expected 1", lambda: call(x, cache, w, padding=(1, 1))),
            ("next cache has 1 planes and this one 2", lambda: call(x[:, :, :3], cache, w, stride=(2, 1), update=True)),
            ("cache requires a gradient", lambda: call(x, cache.clone().requires_grad_(), w, update=True)),
            ("input has 5 dimensions; expected 4, or 3 without", lambda: call(x[None], cache, w)),
            ("expected 'zeros' or 'replicate'", lambda: kiln.torch.CausalConv1d(1, 1, 2, padding_mode="reflect")),
            ("update is True without a cache", lambda: kiln.torch.CausalConv2d(2, 3, 3)(x, update=True)),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                function()


class Layers(Case):
    def test_parameters_and_results_are_pytorchs(self):
        theirs = torch.nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=2, groups=2, padding_mode="circular")
        ours = kiln.torch.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=2, groups=2, padding_mode="circular")
        ours.load_state_dict(theirs.state_dict())
        x, r = torch.randn(2, 4, 7, 6), torch.randn(2, 6, 3, 2)
        assert_close(self, ours(x).detach(), theirs(x).detach())
        assert_close(self, ours(x, r).detach(), (theirs(x) + r).detach())
        for causal, n in zip(CAUSAL, (1, 2, 3)):
            plain = getattr(torch.nn, f"Conv{n}d")(2, 3, 3)
            layer = causal(2, 3, 3)
            self.assertIsInstance(layer, type(plain))
            layer.load_state_dict(plain.state_dict())
            self.assertEqual(repr(layer).split("(")[0], f"CausalConv{n}d")

    def test_fuse_calls_them_as_they_are(self):
        kiln.torch.set_policy("native")
        model = torch.nn.Sequential(kiln.torch.CausalConv1d(2, 3, 3, activation="relu"), torch.nn.Conv1d(3, 2, 1)).eval()
        x = torch.randn(2, 2, 5)
        assert_close(self, kiln.torch.fuse(model)(x).detach(), model(x).detach())

    def test_training_a_stream_whose_cache_is_updated(self):
        kiln.torch.set_policy("native")
        layer = kiln.torch.CausalConv1d(2, 3, 3).double()
        x = double(1, 2, 8).detach()
        loss, cache = 0, layer.first_cache(x)
        for chunk in x.split(4, 2):
            y, cache = layer(chunk, cache, update=True)
            loss = loss + (y * y).sum()
        got = torch.autograd.grad(loss, tuple(layer.parameters()))
        want = torch.autograd.grad((layer(x) ** 2).sum(), tuple(layer.parameters()))
        for one, other in zip(got, want):
            assert_close(self, one, other)


class States(Case):
    def theirs(self, activation):
        return lambda x, s, w, b: ACTIVATIONS[activation].apply(
            F.conv1d(torch.cat((s, x), 2), w.unsqueeze(1), b, groups=w.shape[0]), 0.0
        )

    def test_random_states(self):
        for policy, count in (("wait", 2), ("native", 16)):
            kiln.torch.set_policy(policy)
            for i in range(count):
                _cached.least_spared_bytes = self.source.choice((0, 1 << 40))
                taps, channels, length = self.source.randint(2, 4), self.source.randint(2, 5), self.source.randint(1, 70)
                s, w, b = double(2, channels, taps - 1), double(channels, taps), double(channels)
                x = double(2, channels, length)
                if i % 2:
                    x = double(2, length, channels).transpose(1, 2).detach().requires_grad_()
                name = self.source.choice(("identity", "silu"))
                ours = lambda x, s, w, b: kiln.torch.causal_conv1d(x, w, b, initial_state=s, activation=name)[0]
                self.check(ours, self.theirs(name), x, s, w, b, what=f"{tuple(x.shape)}, {taps}, {name}", strides=False)
                y, state = kiln.torch.causal_conv1d(x, w, b, activation=name)
                assert_close(self, y.detach(), self.theirs(name)(x, torch.zeros_like(s), w, b).detach())
                before = torch.cat((torch.zeros_like(s), x), 2)
                self.assertTrue(torch.equal(state, before[:, :, length:]))
        self.assertEqual(counts()[0] > 0, True)

    def test_steps(self):
        x, s, w, b = (t.detach() for t in (double(2, 3, 9), double(2, 3, 3), double(3, 4), double(3)))
        want, state = self.theirs("silu")(x, s, w, b), s.clone()
        y, whole_state = kiln.torch.causal_conv1d(x, w, b, initial_state=s, activation="silu")
        assert_close(self, y, want)
        for t in range(4):
            y = kiln.torch.causal_conv1d_update(x[:, :, t], state, w, b, activation="silu")
            assert_close(self, y, want[:, :, t])
        y = kiln.torch.causal_conv1d_update(x[:, :, 4:], state, w.unsqueeze(1), b, activation="silu")
        assert_close(self, y, want[:, :, 4:])
        self.assertTrue(torch.equal(state, whole_state))
        self.assertEqual(counts()[1], 0)

    def test_what_is_wrong_is_named(self):
        x, w = torch.ones(1, 2, 4), torch.ones(2, 3)
        whole, step = kiln.torch.causal_conv1d, kiln.torch.causal_conv1d_update
        for words, function in (
            (r"weight has sizes \(3, 3\); expected \(2, k\)", lambda: whole(x, torch.ones(3, 3))),
            ("x has 2 dimensions; expected 3", lambda: whole(x[0], w)),
            ("x has the length 0", lambda: whole(x[:, :, :0], w)),
            (r"initial_state has sizes \(1, 2, 3\); expected \(1, 2, 2\)",
             lambda: whole(x, w, initial_state=torch.ones(1, 2, 3))),
            ("state is of torch.float64 on cpu", lambda: step(x[..., 0], torch.ones(1, 2, 2).double(), w)),
            ("state requires a gradient", lambda: step(x[..., 0], torch.ones(1, 2, 2, requires_grad=True), w)),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                function()


class Wide(Case):
    """Tensors whose elements lie 2^31 and more apart; of the memory between them nothing is touched."""

    def far(self, tensor, dim):
        inner = tensor.transpose(0, dim).contiguous()
        strides = [2**31 + 640, *inner.stride()[1:]]
        try:
            out = torch.empty(2**31 + 8192, dtype=tensor.dtype).as_strided(inner.shape, strides).transpose(0, dim)
        except RuntimeError as error:
            self.skipTest(f"no address space: {error}")
        return out.copy_(tensor)

    def test_all_passes(self):
        x, w = torch.randint(-3, 4, (2, 2, 4, 6)).half(), torch.randint(-3, 4, (4, 2, 3, 3)).half()
        want = F.conv2d(x, w, padding=1)
        for dim in (0, 1):
            self.assertTrue(torch.equal(kiln.torch.conv2d(self.far(x, dim), w, padding=1), want), dim)
        dy = torch.randint(-2, 3, want.shape).half()
        rest = (w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True] * 3)
        gradients = torch.ops.kiln.convolution_backward(self.far(dy, 0), self.far(x, 0), *rest)
        for got, expected in zip(gradients, torch.ops.aten.convolution_backward(dy, x, *rest)):
            self.assertTrue(torch.equal(got, expected))
        self.assertEqual(counts()[1], 0)


class Compiled(Case):
    """Lengths of chunks that change are compiled as often as PyTorch's own convolution of them is."""

    def frames(self, function, lengths):
        torch._dynamo.reset()
        counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(function, backend=counter, fullgraph=True)
        torch.manual_seed(1)
        for length in lengths:
            x = torch.randn(1, 2, length, 3, 3, dtype=torch.float64)
            cache, other = torch.randn(2, 1, 2, 2, 3, 3, dtype=torch.float64).unbind()
            mine = cache.clone()
            want, after = function(x, cache)
            got, kept = compiled(x, mine)
            assert_close(self, got, want)
            self.assertTrue(torch.equal(kept, after), length)
        return counter.frame_count

    def test_chunks(self):
        kiln.torch.set_policy("native")
        w = double(3, 2, 3, 3, 3).detach()

        def theirs(x, cache):
            whole = torch.cat((cache, x), 2)
            return F.conv3d(whole, w, padding=(0, 1, 1)), whole[:, :, -2:].clone()

        def ours(x, cache, update=False):
            return kiln.torch.conv3d_cached(x, cache, w, padding=1, update=update)

        lengths = (4, 5, 7, 12, 6)
        most = self.frames(theirs, lengths)
        for update in (False, True):
            self.assertLessEqual(self.frames(lambda x, cache: ours(x, cache, update), lengths), most, update)

    @full_only
    def test_gradients(self):
        layer = kiln.torch.CausalConv2d(2, 3, 3, padding=((1, 0),), activation="silu").double()
        torch._dynamo.reset()
        compiled = torch.compile(lambda x, cache: layer(x, cache)[0], fullgraph=True, dynamic=True)
        for length in (4, 6):
            x, cache = double(1, 2, length, 4), double(1, 2, 2, 4)
            self.check(compiled, lambda x, cache: layer(x, cache)[0], x, cache)


if __name__ == "__main__":
    unittest.main()
