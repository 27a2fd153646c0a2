"""The policy background: what computes a new shape while its kernel compiles."""

import random
import unittest

import torch
import torch.nn.functional as F
from support import on_kiln

import kiln.torch


def new_layer():
    """A layer whose kernel nobody has: its width is chance. Its sums are those of small integers,
    the same in any order."""
    width = 20 + random.SystemRandom().randrange(5000)
    x = torch.randint(-3, 4, (1, 8, 9, width)).float()
    return x, torch.randint(-3, 4, (16, 8, 3, 3)).float()


class Background(unittest.TestCase):
    def tearDown(self):
        with kiln.torch.enabled(devices="cpu", stand_in="quick"):
            pass

    def test_a_stand_in_serves_until_the_kernel_is_there(self):
        x, w = new_layer()
        want = F.conv2d(x, w)
        with on_kiln("background"), kiln.torch.enabled(devices="cpu", stand_in="any"):
            first = F.conv2d(x, w)
            (row,) = kiln.torch.report().rows
            self.assertEqual((row["state"], row["served"], row["native"]), ("standing in", 1, 0))
            self.assertEqual(row["stand_in"], 1)
            engine = row["engine"]
            kiln.torch.wait()
            then = F.conv2d(x, w)
            (row,) = kiln.torch.report().rows
            self.assertEqual((row["state"], row["served"], row["native"]), ("ready", 2, 0))
            self.assertEqual(row["stand_in"], 1)
            self.assertNotEqual(row["engine"], engine)
            self.assertIn("stand-in", str(kiln.torch.report()))
        self.assertTrue(torch.equal(first, want))
        self.assertTrue(torch.equal(then, want))

    def test_all_gradients_of_a_call_have_one(self):
        x, w = new_layer()
        x.requires_grad_(), w.requires_grad_()
        want = torch.autograd.grad(F.conv2d(x, w).sum(), (x, w))
        with on_kiln("background"), kiln.torch.enabled(devices="cpu", stand_in="any"):
            y = F.conv2d(x, w)
            for _ in range(2):
                got = torch.autograd.grad(y.sum(), (x, w), retain_graph=True)
                for one, other in zip(got, want):
                    self.assertTrue(torch.equal(one, other))
                kiln.torch.wait()
            for row in kiln.torch.report().rows:
                self.assertEqual((row["native"], row["stand_in"]), (0, 1), row)

    def test_without_one_a_new_shape_is_native(self):
        x, w = new_layer()
        with on_kiln("background"), kiln.torch.enabled(devices="cpu", stand_in="none"):
            F.conv2d(x, w)
            (row,) = kiln.torch.report().rows
            self.assertEqual((row["state"], row["native"], row["stand_in"]), ("compiling", 1, 0))

    def test_other_policies_have_none(self):
        x, w = new_layer()
        with on_kiln("measure"), kiln.torch.enabled(devices="cpu", stand_in="any"):
            F.conv2d(x, w)
            (row,) = kiln.torch.report().rows
            self.assertEqual((row["state"], row["native"], row["stand_in"]), ("compiling", 1, 0))
            kiln.torch.set_policy("wait")
            F.conv2d(x, w)
            (row,) = kiln.torch.report().rows
            self.assertEqual((row["state"], row["served"], row["stand_in"]), ("ready", 1, 0))

    def test_a_wrong_stand_in_is_refused(self):
        with self.assertRaisesRegex(ValueError, "stand_in is 'fast'; expected one of none, quick, any"):
            kiln.torch.enable(devices="cpu", stand_in="fast")


if __name__ == "__main__":
    unittest.main()
