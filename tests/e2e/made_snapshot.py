# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots as torch.cuda.memory._dump_snapshot() writes them, made by hand: the same dictionaries, pickled by Python. The numbers are
those of a small training, on two devices, whose ring of events has lost its beginning. `python3 made_snapshot.py FOLDER` writes
tests/data/made_snapshots."""
import os
import pickle
import sys

MIB = 1 << 20
START_US = 1_790_000_000_000_000


def frame(name, filename="/repo/train.py", line=0):
    return {"name": name, "filename": filename, "line": line}


CPP = [
    frame("torch::unwind::unwind()", "??"),
    frame("torch::CapturedTraceback::gather(bool, bool, bool)", "??"),
    frame("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(signed char, unsigned long, CUstream_st*)", "CUDACachingAllocator.cpp"),
    frame("at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType)", "??"),
]
MAIN = [frame("train", line=40), frame("<module>", line=60)]
FORWARD = CPP + [
    frame("at::_ops::empty_memory_format::redispatch(c10::DispatchKeySet, c10::ArrayRef<c10::SymInt>)", "??"),
    frame("at::_ops::add_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&, at::Tensor const&, c10::Scalar const&)", "??"),
    frame("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&, c10::Scalar const&)", "??"),
    frame("_PyEval_EvalFrameDefault", "??"),
    frame("forward", "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125),
    frame("forward", "/repo/model.py", 17),
    *MAIN,
]
BACKWARD = CPP + [frame("at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "??"),
                  frame("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "??"),
                  frame("torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "??")]
OPTIMIZER = [frame("_init_group", "/opt/venv/lib/python3.12/site-packages/torch/optim/adamw.py", 180), frame("train", line=44), MAIN[1]]
NCCL = CPP + [frame("ncclCommInitRank", "??"), frame("start_thread", "??")]


def block(address, size, asked=None, state="active_allocated", frames=()):
    return {"address": address, "size": size, "requested_size": (size if asked is None else asked) if state != "inactive" else 0,
            "state": state, "frames": list(frames)}


def segment(address, blocks, device=0, stream=0, pool=(0, 0), kind="large", is_expandable=False):
    total = sum(b["size"] for b in blocks)
    active = [b for b in blocks if b["state"] == "active_allocated"]
    return {"device": device, "address": address, "total_size": total, "allocated_size": sum(b["size"] for b in active),
            "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
            "requested_size": sum(b["requested_size"] for b in active), "stream": stream, "segment_type": kind,
            "segment_pool_id": pool, "is_expandable": is_expandable, "frames": list(FORWARD), "blocks": blocks}


class Trace:
    def __init__(self):
        self.events, self.time_us = [], START_US

    def add(self, action, addr, size, frames=(), **more):
        self.time_us += 10
        event = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.time_us, "compile_context": "N/A",
                 "user_metadata": "", "frames": list(frames), **more}
        if action == "oom":
            del event["addr"]
        self.events.append(event)

    def free(self, addr, size, frames=()):
        self.add("free_requested", addr, size, frames)
        self.add("free_completed", addr, size, frames)


BASE = 0x7F0000000000
WEIGHT, BIAS, GRADIENT, STATE, OLD = BASE, BASE + 8 * MIB, BASE + 20 * MIB, BASE + 28 * MIB, BASE + 16 * MIB


def snapshot(steps=9):
    """WEIGHT was allocated before anything was recorded, BIAS in the part that the ring has lost, OLD was freed in the part that it has."""
    trace, notes = Trace(), []
    trace.free(OLD, 2 * MIB - 100)
    trace.add("segment_alloc", BASE + 20 * MIB, 20 * MIB, FORWARD)
    trace.add("alloc", GRADIENT, 8 * MIB - 24, BACKWARD)
    for step in range(steps):
        begin_us = trace.time_us + 5
        leak = BASE + 40 * MIB + step * MIB
        trace.add("alloc", OLD, 4 * MIB, FORWARD)
        trace.add("alloc", leak, 1000, FORWARD)
        if step == 0:
            trace.add("alloc", STATE, 8 * MIB, OPTIMIZER)
        trace.free(OLD, 4 * MIB)
        notes.append({"name": f"ProfilerStep#{step + 3}", "stage": "START", "device": 0, "time_us": begin_us})
        notes.append({"name": f"ProfilerStep#{step + 3}", "stage": "END", "device": 0, "time_us": trace.time_us + 4})
        trace.time_us += 100
    trace.add("segment_alloc", BASE + 40 * MIB, steps * MIB + 3 * MIB, FORWARD)
    trace.add("oom", 0, 6 * MIB, FORWARD, device_free=1 * MIB)
    trace.add("segment_alloc", BASE + 100 * MIB, 2 * MIB, NCCL)
    trace.add("segment_free", BASE + 100 * MIB, 2 * MIB)
    trace.add("snapshot", 0, 0)
    leaks = []
    for step in range(steps):
        leaks += [block(BASE + 40 * MIB + step * MIB, 1024, 1000, frames=FORWARD),
                  block(BASE + 40 * MIB + step * MIB + 1024, MIB - 1024, state="inactive")]
    segments = [
        segment(BASE, [block(WEIGHT, 8 * MIB), block(BIAS, 4 * MIB, 4 * MIB - 12, frames=FORWARD), block(BASE + 12 * MIB, 8 * MIB, state="inactive")]),
        segment(BASE + 20 * MIB, [block(GRADIENT, 8 * MIB, 8 * MIB - 24, frames=BACKWARD), block(STATE, 8 * MIB, frames=OPTIMIZER),
                                  block(BASE + 36 * MIB, 4 * MIB, state="inactive")]),
        segment(BASE + 40 * MIB, leaks + [block(BASE + (40 + steps) * MIB, 3 * MIB, 2 * MIB, "active_pending_free", FORWARD)], is_expandable=True),
        segment(BASE + 200 * MIB, [block(BASE + 200 * MIB, 2 * MIB, state="inactive")], kind="small", stream=7),
        segment(BASE, [block(BASE, 2 * MIB, 1 * MIB + 5, frames=NCCL)], device=1, pool=(1, 0), kind="small"),
    ]
    other = Trace()
    other.add("segment_alloc", BASE, 2 * MIB, NCCL)
    other.add("alloc", BASE, 1 * MIB + 5, NCCL)
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                "expandable_segments": True, "roundup_power2_divisions": {"1": 0, "2": 0}}
    return {"segments": segments, "device_traces": [trace.events, other.events], "allocator_settings": settings, "external_annotations": notes}


class Runs:
    """What a hostile pickle would run."""

    def __reduce__(self):
        return os.system, ("echo run > was_run",)


def main(folder):
    data = snapshot()
    files = {"train.pickle": pickle.dumps(data, 4), "hostile.pickle": pickle.dumps({"segments": [], "device_traces": [[Runs()]]}, 4)}
    files["cut.pickle"] = files["train.pickle"][: len(files["train.pickle"]) * 6 // 10]
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main(sys.argv[1])
