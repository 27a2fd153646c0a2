"""What each layer of a network costs by Kiln and by PyTorch: a table, and a picture of time by layer.

A script of cells ("# %%"), which Jupyter and most editors open as a notebook. It needs PyTorch and
matplotlib, and the package: `pip install ./src/python`. Without a GPU it takes a small network and Kiln's
host device, whose times say nothing but that everything works.

    python samples/pytorch/layers.py [picture.png]
"""

# %% A network, its input, and where they live
import sys

try:
    import matplotlib

    matplotlib.use("agg" if __name__ == "__main__" and "ipykernel" not in sys.modules else matplotlib.get_backend())
    import matplotlib.pyplot as plt
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

import kiln.torch

on_gpu = torch.cuda.is_available()
device = "cuda" if on_gpu else "cpu"
torch.backends.cudnn.benchmark = True  # PyTorch's side tries its algorithms too
torch.manual_seed(0)


def block(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, 1, 1, groups=outputs // 8), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 1), nn.ReLU(),
    )


width, size, images = (64, 112, 32) if on_gpu else (8, 10, 2)
model = nn.Sequential(
    nn.Conv2d(3, width, 7, 2, 3), nn.ReLU(), block(width, 2 * width), block(2 * width, 4 * width, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10),
).to(device, memory_format=torch.channels_last)
x = torch.randn(images, 3, size, size, device=device).to(memory_format=torch.channels_last)


def step():
    with torch.autocast(device, torch.float16, enabled=on_gpu):
        model(x).float().square().mean().backward()
    model.zero_grad()


# %% Kiln computes what it is faster at
kiln.torch.enable("measure", devices=device)
step()  # PyTorch's, while the kernels compile
kiln.torch.wait()
for _ in range(12):  # both are timed in the first, and the cheaper one stays
    step()
report = kiln.torch.report()
kiln.torch.disable()

# %% The table; pandas.DataFrame(report.columns()) is the same as a frame
print(report)

# %% Time by layer
rows = [row for row in report.rows if row["kiln_us"] is not None and row["pass"] in ("forward", "data gradient", "filter gradient")]
# A backward call's times are those of all its gradients: one bar, of the first.
seen, bars = set(), []
for row in sorted(rows, key=lambda row: (row["pass"] != "forward", row["pass"], row["problem"])):
    call = (row["kiln_us"], row["native_us"])
    if call not in seen:
        seen.add(call)
        kind = "forward" if row["pass"] == "forward" else "backward"
        sizes = row["problem"].split()[-1].split("_dh")[0]  # as the program `kiln` takes them
        bars.append((f"{kind}  {sizes}", *call))

figure, axes = plt.subplots(figsize=(10, 1 + 0.45 * len(bars)), layout="constrained")
places = range(len(bars))
axes.barh([p - 0.2 for p in places], [kiln_us for _, kiln_us, _ in bars], 0.4, label="Kiln", color="#c8553d")
axes.barh([p + 0.2 for p in places], [native_us for _, _, native_us in bars], 0.4, label="PyTorch's own", color="#588b8b")
axes.set_yticks(places, [label for label, _, _ in bars], fontsize=8, family="monospace")
axes.invert_yaxis()
axes.set_xlabel("microseconds of the device, one call")
figure.suptitle(f"{torch.cuda.get_device_name(0) if on_gpu else 'host device'}: {report.served} results by Kiln, {report.native} by PyTorch")
axes.legend()
picture = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else "layers.png"
figure.savefig(picture, dpi=150)
print(f"wrote {picture}")
