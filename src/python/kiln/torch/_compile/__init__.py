"""Kiln's convolutions in what torch.compile and AOTInductor compile: a pass of inductor over a graph of aten operators.

| file | what it is |
|---|---|
| _pass | compile_pass(): when the pass is there, and what it replaced |
| _rewrite | puts Kiln's operator into the place of a convolution and of what follows it |
| _chains | finds what follows a convolution in a graph |
| _patterns | what activations and batch normalization look like in a graph, and where they are |
| _nodes | new nodes, with the values that inductor asks for |
"""
