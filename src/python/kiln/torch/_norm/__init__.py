"""Normalizations with an addition and an activation, and convolutions that make the moments of their result.

| file | what it is |
|---|---|
| _composed | the operators by PyTorch's functions: where Kiln refuses, and for derivatives of gradients |
| _operators | the operators, with fake kernels and gradients |
| _functions | the functions of kiln.torch |
| _rows | the operators of instance, group, layer and RMS normalization, with all of that |
| _row_functions | their functions of kiln.torch |
"""
