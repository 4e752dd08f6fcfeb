# SPDX-License-Identifier: Apache-2.0
"""Counts steps while the recorder does not observe PyTorch's records. C code around PyTorch's own functions reports
their calls (src/agents/python/calls.c). Neither the program nor torch.compile sees a change of these objects."""

_COLLECTIVES = ("allreduce", "allreduce_coalesced", "allgather", "allgather_coalesced", "_allgather_base", "allgather_into_tensor_coalesced",
                "alltoall", "alltoall_base", "barrier", "broadcast", "gather", "reduce", "reduce_scatter", "_reduce_scatter_base",
                "reduce_scatter_tensor_coalesced", "recv", "recv_anysource", "scatter", "send", "monitored_barrier")


def watch(torch, native):
    """Watches the calls. Returns "yes", or the reason why that is impossible, as a fact of the recording."""
    record = torch.autograd.profiler.record_function
    engine = type(torch.autograd.Variable._execution_engine)
    if not native.watch_records(record, record.__enter__, record.__exit__, record.__init__):
        return "this Python calls functions in a way of its own"
    run = next((vars(kind)["run_backward"] for kind in engine.__mro__ if "run_backward" in vars(kind)), None)
    if run is None or not native.watch_engine(run):
        return "this PyTorch runs backwards in a way of its own"
    if not native.watch_scaler(torch._amp_update_scale_):
        return "this PyTorch updates gradient scalers in a way of its own"
    _watch_collectives(torch, native)
    native.torch_sees_calls()
    return "yes"


def _watch_collectives(torch, native):
    """Records which collective a process is in, or waits for, in case the process dies."""
    c10d = getattr(torch._C, "_distributed_c10d", None)
    for kind, names in (("ProcessGroup", _COLLECTIVES), ("Work", ("wait",))):
        methods = vars(getattr(c10d, kind, object))
        for name in names:
            function = getattr(methods.get(name), "__func__", None)
            if function is not None:
                native.watch_collective(function, name, kind == "Work")
