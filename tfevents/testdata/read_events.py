"""Reads events.out.tfevents.golden with tensorboard's own reader and checks what it says.

pip install tensorboard; go test ./tfevents -update; python read_events.py
"""
import math
import os

import tensorboard
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

here = os.path.dirname(os.path.abspath(__file__))
events = EventAccumulator(os.path.join(here, "events.out.tfevents.golden"))
events.Reload()

loss = [(e.step, e.value) for e in events.Scalars("train/loss")]
assert [s for s, _ in loss] == [1, 2, 3, 4], loss  # 3, 4 and 5 of the first session are purged
assert [v for _, v in loss[:3]] == [5, 4, 2.5] and math.isnan(loss[3][1]), loss

text = events.Tensors("config")
assert make_ndarray(text[0].tensor_proto).tolist() == ["seed: 1 — ünïcode".encode()], text
assert events.SummaryMetadata("config").plugin_data.plugin_name == "text"

h = events.Histograms("train/grad_norm_layers")[-1].histogram_value
assert (h.min, h.max, h.num, h.sum, h.sum_squares) == (0, 3, 4, 5, 11), h
assert sum(h.bucket) == 4 and h.bucket_limit[-1] == 3 and h.bucket[0] == 1 and h.bucket[-1] == 1, h

with open(os.path.join(here, "read.txt"), "w") as f:
    f.write(f"tensorboard {tensorboard.__version__} read events.out.tfevents.golden as read_events.py expects\n")
