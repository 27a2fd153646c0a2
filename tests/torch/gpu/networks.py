"""The networks of the figures, small ones written here and those of torchvision."""

import torch
import torchvision
from torch import nn


class Block(nn.Module):
    """Two convolutions with group normalization and a short cut, as diffusion models stack them."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.body = nn.Sequential(
            nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(32, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1),
        )
        self.short = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.body(x) + self.short(x)


def diffusion():
    """Three levels of Stable Diffusion's UNet, without attention."""
    return nn.Sequential(
        nn.Conv2d(4, 320, 3, padding=1), Block(320, 320), nn.Conv2d(320, 320, 3, 2, 1), Block(320, 640),
        nn.Conv2d(640, 640, 3, 2, 1), Block(640, 1280), Block(1280, 1280),
    )


class UNet(nn.Module):
    """Ronneberger's, with padding; with 64 channels, its own."""

    def __init__(self, channels=32):
        super().__init__()
        widths = [channels << level for level in range(5)]
        pair = lambda i, o: nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
            nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
        )
        self.down = nn.ModuleList(pair(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(widths, widths[1:]))
        self.join = nn.ModuleList(pair(2 * i, i) for i in widths[:-1])
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        kept = []
        for level, pair in enumerate(self.down):
            x = pair(x if level == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for level in range(3, -1, -1):
            x = self.join[level](torch.cat([self.up[level](x), kept[level]], 1))
        return self.last(x)


def vision(name):
    return getattr(torchvision.models, name)


# name: (constructor, batch, size of an input)
NETWORKS = {
    "resnet50": (vision("resnet50"), 32, (3, 224, 224)),
    "mobilenet_v2": (vision("mobilenet_v2"), 32, (3, 224, 224)),
    "convnext_tiny": (vision("convnext_tiny"), 32, (3, 224, 224)),
    "vgg16": (vision("vgg16"), 32, (3, 224, 224)),
    "resnet18": (vision("resnet18"), 32, (3, 224, 224)),
    "alexnet": (vision("alexnet"), 128, (3, 224, 224)),
    "efficientnet_b0": (vision("efficientnet_b0"), 32, (3, 224, 224)),
    "unet": (UNet, 8, (3, 256, 256)),
    "diffusion": (diffusion, 4, (4, 64, 64)),
    "r3d_18": (torchvision.models.video.r3d_18, 8, (3, 16, 112, 112)),
}


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    return model


# A small one, for trying the program without a GPU.
SMALL = {"small": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)), 2, (3, 8, 8))}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def parts_of(mode):
    """The arithmetic and the layout of "amp", f16 under autocast with channels last; of "tf32", "f32" (no TF32) and
    "f64", with channels first; or of either with the other layout, such as "amp-nchw"."""
    arithmetic, _, layout = mode.partition("-")
    return arithmetic, layout or ("nhwc" if arithmetic == "amp" else "nchw")


def set_mode(mode):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = parts_of(mode)[0] in ("tf32", "amp")


def prepare(name, mode, batch=None):
    make, usual, sizes = {**NETWORKS, **SMALL}[name]
    set_mode(mode)
    torch.manual_seed(0)
    model = without_dropout(make()).to(DEVICE)
    x = torch.randn(batch or usual, *sizes, device=DEVICE)
    arithmetic, layout = parts_of(mode)
    if layout == "nhwc":
        last = torch.channels_last_3d if len(sizes) == 4 else torch.channels_last
        model, x = model.to(memory_format=last), x.to(memory_format=last)
    if arithmetic == "f64":
        model, x = model.double(), x.double()
    return model, x


class Training:
    """Steps of SGD on one batch, towards a fixed target."""

    def __init__(self, model, x, mode):
        self.model, self.x, self.amp = model.train(), x, parts_of(mode)[0] == "amp"
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        self.scaler = torch.amp.GradScaler(DEVICE, enabled=self.amp)
        self.target = None

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.float16, enabled=self.amp):
            y = self.model(self.x)
            if self.target is None:
                generator = torch.Generator(DEVICE).manual_seed(1)
                self.target = torch.randn(y.shape, device=DEVICE, generator=generator).to(y.dtype)
            loss = nn.functional.mse_loss(y.float() if self.amp else y, self.target.to(self.x.dtype))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()
