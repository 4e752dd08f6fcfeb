# SPDX-License-Identifier: Apache-2.0
"""For bench/torch_memory. `torch_memory_run.py steps OBSERVER STEPS` trains the GPT of torch_step.py and prints its
resident memory. `torch_memory_run.py truth MODEL` trains a model of tests/torch and prints the category of each
storage, as the program knows it and as torch.profiler reports it. Each prints one line of JSON."""
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "tests", "torch")]

import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

POINTS = 20


def resident():
    """Returns the resident bytes of this process, and the shared ones of them."""
    with open("/proc/self/statm", encoding="ascii") as file:
        _, all_pages, shared_pages = file.read().split()[:3]
    return int(all_pages) * 4096, int(shared_pages) * 4096


def steps(observer, count):
    import torch_step
    step, prof = torch_step.make_step(), None
    for _ in range(3):
        step()
    found = [(0, *resident())]
    if observer == "torch.profiler":
        prof = profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True)
        prof.start()
    for i in range(1, count + 1):
        step()
        if i % max(count // POINTS, 1) == 0:
            found.append((i, *resident()))
    if prof:
        prof.stop()
        found.append((count, *resident()))
    return {"torch": torch.__version__, "resident": found}


def levels_of(prof, times):
    """Returns, for each time in ns, {address: category} of the memory that torch.profiler reports as alive."""
    from torch.profiler._memory_profiler import Action, TensorKey
    memory = prof._memory_profile()
    alive, found, timeline, at = {}, [], memory.timeline, 0
    for when in times:
        while at < len(timeline) and timeline[at][0] <= when:
            _, action, (key, version), _ = timeline[at]
            at += 1
            if not isinstance(key, TensorKey):
                continue
            version += action == Action.INCREMENT_VERSION
            category = memory._categories.get(key, version)
            if action == Action.DESTROY:
                alive.pop(key.storage.ptr, None)
            else:
                alive[key.storage.ptr] = category.name.lower() if category else "unknown"
        found.append(dict(alive))
    return found


def truth(name):
    import memory_truth
    times, plain = [], memory_truth.moment

    def moment(**lists):
        time.sleep(0.002)  # the moment must be far from events: two clocks differ
        plain(**lists)
        times.append(time.time_ns())
        time.sleep(0.002)

    memory_truth.moment = moment
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loop, prof = memory_truth.Loop(name), None
    for number, batch in enumerate(loop.batches()):
        if number == memory_truth.STEPS - 2:
            first = len(times)
            prof = profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True)
            prof.start()
        loop.step(batch)
    prof.stop()
    return {"moments": memory_truth.moments, "first": first, "theirs": levels_of(prof, times[first:])}


def main():
    found = steps(sys.argv[2], int(sys.argv[3])) if sys.argv[1] == "steps" else truth(sys.argv[2])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
