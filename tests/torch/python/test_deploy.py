"""record(), prewarm(), a deployment that compiles nothing, tune(), use(), and what the environment enables."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import torch
import torch.nn.functional as F
from support import counts, full_only, on_kiln
from torch import nn

import kiln.torch

PACKAGE = pathlib.Path(kiln.torch.__file__).resolve().parents[2]


def python(code, **environment):
    """What a new process prints."""
    paths = [str(PACKAGE), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout, done.stderr


DEPLOYED = """
import json, sys, torch, kiln.torch
kiln.torch.enable(devices="cpu", bundle=sys.argv[1] if len(sys.argv) > 1 else None, strict=True)
conv = torch.nn.Conv2d(2, 3, 3)
conv(torch.ones(1, 2, 6, 6)).sum().backward()
torch.nn.functional.conv2d(torch.ones(1, 2, 6, 6), torch.ones(1, 2, 2, 2))
print(json.dumps(kiln.torch.report().rows))
"""

STRICT = """
import json, os, tempfile, torch, kiln.torch
kiln.torch.enable(devices="cpu", strict=True)
kiln.torch.enable(devices="cpu", strict=False)
print(os.environ.get("KILN_CACHE"))
kiln.torch.enable(devices="cpu", strict=True)
print(os.environ["KILN_CACHE"])
torch.nn.functional.conv2d(torch.ones(1, 2, 6, 6), torch.ones(1, 2, 2, 2))
assert kiln.torch.report().native == 1
try:
    kiln.torch.enable(devices="cpu", strict=False)
except RuntimeError as error:
    print("late" if "too late" in str(error) else error)
with tempfile.TemporaryDirectory() as folder:
    os.environ["KILN_CACHE_DIR"] = folder
    manifest = os.path.join(folder, "manifest")
    with open(manifest, "w") as file:
        file.write("conv mb1ic2ih6oc1kh2\\n")
    print("compiled" if kiln.torch.prewarm(manifest, arch="host") else "no")
"""


class Deployment(unittest.TestCase):
    def test_a_bundle_serves_a_process_that_compiles_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            manifest, bundle = os.path.join(folder, "manifest"), os.path.join(folder, "bundle")
            with on_kiln():
                conv = nn.Conv2d(2, 3, 3)
                F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(1, 2, 2, 2))  # not in the block
                with kiln.torch.record(manifest):
                    conv(torch.ones(1, 2, 6, 6)).sum().backward()
            lines = [json.loads(line) for line in open(manifest)]
            self.assertEqual(len(lines), 3)
            self.assertEqual({line["architecture"] for line in lines}, {"host"})
            self.assertIn("3 kernels", kiln.torch.prewarm(manifest, bundle))
            empty = os.path.join(folder, "cache")
            code = DEPLOYED.replace("sys.argv[1] if len(sys.argv) > 1 else None", repr(bundle))
            out, _ = python(code, KILN_CACHE_DIR=empty)
            rows = json.loads(out)
            self.assertEqual(len(rows), 4)
            for row in rows:
                if row["b"] == "1x2x2x2":  # in no bundle
                    self.assertEqual((row["served"], row["native"]), (0, 1))
                    self.assertIn("KILN_CACHE=strict forbids to compile it", row["why"])
                else:
                    self.assertEqual((row["served"], row["native"], row["origin"]), (1, 0, "bundle"))
            self.assertFalse(os.path.exists(empty))

    def test_a_record_keeps_plans_that_clear_removes(self):
        with tempfile.TemporaryDirectory() as folder, on_kiln():
            manifest = os.path.join(folder, "manifest")
            one, other = torch.ones(1, 2, 5, 5), torch.ones(1, 2, 2, 2)
            F.conv2d(one, other)
            with kiln.torch.record(manifest):
                F.conv2d(one, other)
                kiln.torch.clear()
                F.conv2d(torch.ones(1, 2, 6, 6), other)
            self.assertEqual(len(open(manifest).readlines()), 2)
            with kiln.torch.record(manifest):
                kiln.torch.clear()
                F.conv2d(one, other)  # used before the block, too
            self.assertEqual(len(open(manifest).readlines()), 1)
            with self.assertRaises(RuntimeError):
                with kiln.torch.record(manifest):
                    raise RuntimeError
            self.assertEqual(len(open(manifest).readlines()), 1)
            reached = False
            with self.assertRaises(OSError):
                with kiln.torch.record(os.path.join(folder, "nowhere", "manifest")):
                    reached = True
            self.assertFalse(reached)

    def test_tuning_changes_nothing_of_the_model(self):
        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.norm, self.drop = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Dropout()

            def forward(self, x):
                y = self.drop(self.norm(self.conv(x)))
                return {"first": y, "rest": [y * 2, {"count": 3}]}

        model, x = Both().train(), torch.ones(1, 2, 5, 5)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        torch.manual_seed(3)
        random = torch.rand(1)
        torch.manual_seed(3)
        with on_kiln(), unittest.mock.patch.object(kiln.torch._deploy, "_run_program", return_value="table") as run:
            self.assertEqual(kiln.torch.tune(model, x), "table")
        self.assertEqual(run.call_args[0][:2], ("tune", "--batch"))
        self.assertTrue(torch.equal(torch.rand(1), random))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertIsNone(model.conv.weight.grad)

    def test_settings_that_come_too_late_are_refused(self):
        with on_kiln(), tempfile.TemporaryDirectory() as folder:
            F.conv2d(torch.ones(1, 2, 5, 5), torch.ones(1, 2, 2, 2))
            with self.assertRaisesRegex(RuntimeError, r"enable\(strict=True\) comes too late"):
                kiln.torch.enable(devices="cpu", strict=True)
            self.assertNotEqual(os.environ.get("KILN_CACHE"), "strict")
            kiln.torch.enable(devices="cpu", strict=False)
            rubbish = os.path.join(folder, "rubbish")
            pathlib.Path(rubbish).write_bytes(os.urandom(500))
            with self.assertRaisesRegex(ValueError, "which kiln.torch.prewarm.. did not make, or not whole"):
                kiln.torch.enable(devices="cpu", bundle=rubbish)

    def test_strict_mode_is_taken_back_before_the_first_plan_only(self):
        out, _ = python(STRICT, KILN_CACHE_DIR=os.path.join(tempfile.gettempdir(), "kiln-nothing-is-here"))
        self.assertEqual(out.split(), ["None", "strict", "late", "compiled"])

    def test_without_a_gpu_enable_says_so(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with self.assertWarnsRegex(RuntimeWarning, "PyTorch finds no GPU"):
            kiln.torch.enable()
        kiln.torch.disable()

    def test_three_lines_of_the_readme(self):
        page = pathlib.Path(__file__).resolve().parents[3] / "README.md"
        lines = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)[0]
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model, x = nn.Conv2d(3, 4, 3, device=device), torch.randn(1, 3, 6, 6, device=device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # there may be no GPU
            exec(lines, {"model": model, "x": x})
        kiln.torch.set_policy("wait")
        kiln.torch.disable()
        self.assertEqual(model.weight.grad.shape, model.weight.shape)

    def test_what_is_wrong_is_named(self):
        with self.assertRaisesRegex(RuntimeError, "call kiln.torch.enable()"):
            with kiln.torch.record("manifest"):
                pass
        with self.assertRaisesRegex(ValueError, "bundle is 'nowhere', which is no file"):
            kiln.torch.enable(bundle="nowhere")
        with self.assertRaisesRegex(RuntimeError, "nowhere"):
            kiln.torch.prewarm("nowhere")
        with self.assertRaisesRegex(ValueError, "policy is 'fast'; expected one of wait,"):
            kiln.torch.set_policy("fast")
        self.assertFalse(kiln.torch.is_enabled())

    @full_only
    def test_tuning(self):
        conv = nn.Conv2d(2, 3, 3)
        with tempfile.TemporaryDirectory() as folder, on_kiln():
            table = kiln.torch.tune(
                conv, torch.ones(1, 2, 5, 5), arguments=["--samples", "1", "--warm-up", "0", "--within", "1"]
            )
            self.assertIn("wgrad", table)
            self.assertIsNone(conv.weight.grad)
            conv(torch.ones(1, 2, 5, 5))
            self.assertEqual(counts(), (1, 0))


class Modules(unittest.TestCase):
    def test_a_module_has_a_policy_of_its_own(self):
        model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.Conv2d(3, 3, 3)))
        x = torch.randn(1, 2, 6, 6)
        use = kiln.torch.use(model[1], policy="native")
        with on_kiln():
            model(x).sum().backward()
            rows = {row["b"]: row for row in kiln.torch.report().rows if row["pass"] == "filter gradient"}
            self.assertEqual((rows["3x2x3x3"]["served"], rows["3x2x3x3"]["native"]), (1, 0))
            self.assertEqual((rows["3x3x3x3"]["served"], rows["3x3x3x3"]["native"]), (0, 1))
            self.assertEqual(rows["3x3x3x3"]["why"], "the policy is native")
            use.remove()
            kiln.torch.clear()
            model(x).sum().backward()
            self.assertEqual(counts()[1], 0)


class Environment(unittest.TestCase):
    """PyTorch calls the entry point that the installed package declares; here the test does what it does."""

    CODE = "import kiln._autoload; kiln._autoload.autoload(); import kiln.torch; print(kiln.torch.is_enabled())"

    def test_what_it_enables(self):
        self.assertEqual(python(self.CODE, KILN_TORCH="1", KILN_TORCH_POLICY="measure")[0], "True\n")
        self.assertEqual(python(self.CODE, KILN_TORCH="0")[0], "False\n")

    def test_a_wrong_policy_is_a_warning(self):
        out, error = python(self.CODE, KILN_TORCH="1", KILN_TORCH_POLICY="fast")
        self.assertEqual(out, "False\n")
        self.assertIn("KILN_TORCH=1 has no effect: policy is 'fast'", error)


if __name__ == "__main__":
    unittest.main()
