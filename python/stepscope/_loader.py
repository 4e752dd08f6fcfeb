# SPDX-License-Identifier: Apache-2.0
"""Data loading: which loader the program waits for, the cost of a batch in the workers, and the exit of workers.

Callables in C wrap PyTorch's own functions. They create no frames, so the exceptions of datasets look unchanged. A
loader has a number in this process. The ids of its processes identify the workers of a loop; in older recordings the seed that PyTorch gives to all of them does.
"""
import os
import signal
import sys
import weakref

from stepscope import _processors

READS, TAKES, DISPATCH = 1, 2, 3  # enum around_use
MOST_DESCRIBED = 100  # loaders whose options are recorded
MOST_LOOPS = 1000  # whose seeds are recorded: each adds a name to the recording

_numbers = {}  # dataset, batch size and number of workers of a loader -> its number
_known = weakref.WeakKeyDictionary()  # loop -> its number and its loader's number, as one integer
_told = weakref.WeakKeyDictionary()   # loop -> workers whose exit has been recorded
_loops = 0
_is_worker_told = False


class _Names:
    """Names of PyTorch that watch() sets once."""

    native = None
    worker_info = None
    base = None  # base class of all loops over loaders
    listeners = None


def watch(torch, native):
    data = torch.utils.data
    _Names.native, _Names.worker_info = native, data.get_worker_info
    fetch, loaders, pin = data._utils.fetch, data.dataloader, data._utils.pin_memory
    _Names.base = loaders._BaseDataLoaderIter
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        kind.fetch = native.around(kind.fetch, name="DataLoader.fetch", before=_before_fetch, is_rare=True, use=READS)
    workers = loaders._MultiProcessingDataLoaderIter
    for kind in (loaders._SingleProcessDataLoaderIter, workers):
        kind._next_data = native.around(kind._next_data, before=_before_wait, after=_after_wait, use=TAKES if kind is workers else READS)
    native.loader_numbers(_number_in_loop)
    workers._try_put_index = native.around(workers._try_put_index, name="DataLoader.dispatch", is_rare=True, use=DISPATCH)
    workers.__init__ = native.around(workers.__init__, name="DataLoader: start of workers", after=_after_start, is_loader_start=True,
                                     is_recursive=True, is_rare=True)
    # a later loop with the same workers; the first loop calls _reset() within the call above
    workers._reset = native.around(workers._reset, name="DataLoader: next loop", after=_after_start, is_loader_start=True, outer=workers.__init__,
                                   is_rare=True)
    workers._shutdown_workers = native.around(workers._shutdown_workers, name="DataLoader: end of workers", after=_after_shutdown, idle="_shutdown",
                                             is_loader_end=True, is_rare=True)
    # the choice of the next samples runs in the process of the loop, also with workers
    _Names.base._next_index = native.around(_Names.base._next_index, name="DataLoader.sampler")
    pin._pin_memory_loop = native.around(pin._pin_memory_loop, before=_before_pinning, use=TAKES)
    pin.pin_memory = native.around(pin.pin_memory, name="DataLoader.pin_memory", is_recursive=True)


class _Pickling:
    """The pickler of multiprocessing's queues, which look it up by its name, and its replacement.

    A worker replaces it at its first batch, the process of a loop at the start of its first loop with workers.
    """

    def __init__(self):
        self.original = self.ours = None
        self.process = 0
        self.loops = weakref.WeakSet()  # with workers that have not ended

    def watch(self, **functions):
        queues = sys.modules.get("multiprocessing.queues")
        kind = getattr(queues, "_ForkingPickler", None)
        if kind is None or (self.ours is not None and self.process == os.getpid()):
            return
        self.process = os.getpid()  # a worker that was forked goes on with its parent's
        self.original = kind
        methods = {name: staticmethod(watch(getattr(kind, name))) for name, watch in functions.items()}
        self.ours = queues._ForkingPickler = type(kind.__name__, (kind,), {"__module__": kind.__module__, **methods})

    def restore(self):
        queues = sys.modules.get("multiprocessing.queues")
        if self.ours is not None and getattr(queues, "_ForkingPickler", None) is self.ours:
            queues._ForkingPickler = self.original
            self.ours = None


_pickling = _Pickling()


# ---- in the process of the loop


def _after_start(loop, raised):
    if raised is None:
        _Names.native.torch_loader_start(_number_in_loop(loop))


def _before_wait(loop):
    _Names.native.torch_loader(_number_in_loop(loop))


def _after_wait(loop, raised):
    if raised is None:
        return
    if raised is StopIteration:
        _Names.native.torch_loader_end()
    else:
        _after_workers(loop, raised)


def loops():
    """Returns the loops that are still alive."""
    return list(_known)


def listen(call):
    """Calls call(loop) before each wait for a batch and before PyTorch's record of the wait starts.

    The call comes in the thread of the loop, which may be any thread.
    """
    if _Names.base is None:  # nothing is recorded
        return
    if _Names.listeners is None:
        _Names.listeners = []
        _Names.base.__next__ = _Names.native.around(_Names.base.__next__, before=_tell_listeners)
    _Names.listeners.append(call)


def unlisten(call):
    if _Names.listeners and call in _Names.listeners:
        _Names.listeners.remove(call)


def _tell_listeners(loop):
    for call in tuple(_Names.listeners):
        call(loop)


def _number_in_loop(loop):
    number = _known.get(loop)
    if number is None:
        number = _known[loop] = _number_of(loop)
        _Names.native.loader_known(loop, number)
        if loop._num_workers:
            _pickling.watch(loads=_Names.native.watch_loads)
            _pickling.loops.add(loop)
    return number


def _number_of(loop):
    global _loops
    size = getattr(loop._index_sampler, "batch_size", None)
    key = (id(loop._dataset), size, loop._num_workers)
    number = _numbers.get(key)
    if number is None:
        number = _numbers[key] = len(_numbers)
        text = type(loop._dataset).__name__ + (f", batch size {size}" if size else "")
        text += f", {loop._num_workers} worker{'s' * (loop._num_workers != 1)}" if loop._num_workers else ", no workers"
        if number < MOST_LOOPS:
            _Names.native.metadata(f"data_loader.{number}", text + (", pinned" if loop._pin_memory else ""))
        if number < MOST_DESCRIBED:
            _describe(loop, number)
    _loops += 1
    if _loops <= MOST_LOOPS and loop._num_workers:
        _Names.native.metadata(f"data_loader.seed.{loop._base_seed}", f"{number << 32 | _loops}")
        for worker in getattr(loop, "_workers", ()):  # loops may have equal seeds
            _Names.native.metadata(f"data_loader.pid.{worker.pid}", f"{number << 32 | _loops}")
        pinning = getattr(loop, "_pin_memory_thread", None)
        if pinning is not None:
            _Names.native.metadata(f"data_loader.pinning.{pinning.native_id}", f"{number << 32 | _loops}")
    return number << 32 | _loops


def _describe(loop, number):
    """Records the options of the loader. An option that this PyTorch or this loop does not have is missing."""
    workers = getattr(loop, "_workers", ())
    options = {"num_workers": loop._num_workers,
               "prefetch_factor": getattr(loop, "_prefetch_factor", None) if workers else None,
               "in_order": getattr(loop, "_in_order", None),
               "persistent_workers": getattr(loop, "_persistent_workers", None),
               "multiprocessing_context": _start_method(workers[0]) if workers else None,
               "pin_memory": loop._pin_memory,
               "dataset_kind": {0: "map", 1: "iterable"}.get(loop._dataset_kind)}
    for name, value in options.items():
        if value is not None:
            _Names.native.metadata(f"data_loader.{number}.{name}", str(value).lower())
    _processors.tell_threads(_Names.native)


def _start_method(worker):
    return getattr(worker, "_start_method", None) or sys.modules["multiprocessing"].get_start_method(allow_none=True)


def _after_workers(loop, raised):
    """Records how the workers of a loop ended, as `stepscope run` does for its own children.

    Only the process that waits for the workers knows it.
    """
    told = _told.setdefault(loop, set())
    for number, worker in enumerate(getattr(loop, "_workers", ())):
        code = worker.exitcode
        if not code or worker.pid in told:
            continue
        told.add(worker.pid)
        how = _signal_name(-code) if code < 0 else f"exit status {code}"
        _Names.native.metadata(f"child.{worker.pid}.{'signal' if code < 0 else 'status'}", how if code < 0 else str(code))
        _Names.native.mark(f"worker {number} of a data loader (pid {worker.pid}) ended: {how}")


def _after_shutdown(loop, raised):
    _after_workers(loop, raised)
    _pickling.loops.discard(loop)
    if not _pickling.loops:
        _pickling.restore()


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _before_pinning(queue):
    _Names.native.thread_name("pin memory")


# ---- in a worker, or in the process of the loop without workers


def _before_fetch(fetcher):
    collate = fetcher.collate_fn
    if type(collate) is not _Names.native.Around:
        fetcher.collate_fn = _Names.native.around(collate, name="DataLoader.collate", is_rare=True)
        _tell_worker()


def _tell_worker():
    global _is_worker_told
    info = _Names.worker_info()
    if info is None or _is_worker_told == os.getpid():
        return
    _is_worker_told = os.getpid()
    _Names.native.metadata("data_loader.worker", str(info.id))
    _Names.native.metadata("data_loader.workers", str(info.num_workers))
    _Names.native.metadata("data_loader.seed", str(info.seed - info.id))
    _Names.native.thread_name(f"data loader worker {info.id}")
    _pickling.watch(dumps=_Names.native.watch_dumps)
    _processors.tell_threads(_Names.native)
