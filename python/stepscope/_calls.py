# SPDX-License-Identifier: Apache-2.0
"""What counts steps while PyTorch's records are not looked at: calls of its own functions, which C stands around (src/agents/python/calls.c).
None of these objects changes for the program, or for torch.compile."""


def watch(torch, native):
    """Why this cannot be, as a fact of the recording; "yes": it can."""
    record = torch.autograd.profiler.record_function
    engine = type(torch.autograd.Variable._execution_engine)
    if not native.watch_records(record.__enter__, record.__exit__, record.__init__):
        return "this Python calls functions in a way of its own"
    run = next((vars(kind)["run_backward"] for kind in engine.__mro__ if "run_backward" in vars(kind)), None)
    if run is None or not native.watch_engine(run):
        return "this PyTorch runs backwards in a way of its own"
    if not native.watch_scaler(torch._amp_update_scale_):
        return "this PyTorch updates gradient scalers in a way of its own"
    native.torch_sees_calls()
    return "yes"
