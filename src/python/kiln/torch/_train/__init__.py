"""Trains a model through fused blocks: convolution, batch normalization, addition and activation.

| file | what it is |
|---|---|
| _blocks | finds blocks in a model's graph |
| _subclasses | finds norms in the graph whose class has a forward of its own |
| _writes | whether a tensor may change after a block has kept it |
| _image_norms | group and instance norms |
| _concatenations | norms of concatenations, whose moments are those of the parts |
| _run | computes a block |
| _synchronized | normalization by the statistics of several processes |
| _function | blocks as nodes of autograd's graph |
| _pools | pooling between them |
| _gates | squeeze-and-excitation between them |
| _record | a module's forward as a graph, where one is the same as the other |
| _model | the class that a fused module has |
| _fuse | fuse_training(), unfuse(), fused_blocks() |
"""
