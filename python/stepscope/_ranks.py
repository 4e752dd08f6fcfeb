# SPDX-License-Identifier: Apache-2.0
"""The rank of this process, its process groups, and the threads that work for each group. PyTorch knows the rank even
if no launcher has set it in the environment (`torch.multiprocessing.spawn`, notebooks).

gloo runs the collectives of a group in threads that it starts while the group is created. They work for no other
group. So the threads that are new after the creation belong to the group. The collectives themselves cost nothing more.
"""
import os
from _thread import get_ident

from stepscope import _facts

MOST_GROUPS = 1000  # that are recorded: each adds a few names to the recording
MOST_RANKS = 30     # listed of a group; of more, the first ones and the last, as in torch.profiler

_making = {}  # thread that creates a group -> groups and threads before that
_told = 0


def watch(torch, native):
    if not torch.distributed.is_available():
        return
    groups = torch.distributed.distributed_c10d

    def tell(group, raised):
        if raised is None and group is not None:
            native.torch_rank(group.rank(), group.size())

    def before(ranks):
        for other in _making.values():
            other.is_alone = False
        _making[get_ident()] = _Before(groups._pg_names, is_alone=not _making)

    def after(ranks, raised):
        made = _making.pop(get_ident()).what_is_new(groups._pg_names)
        if made and raised is None:
            _tell_group(native, *made, ranks)

    groups._update_default_pg = native.around(groups._update_default_pg, after=tell)
    # argument 2 is the ranks; it is empty for the group of all
    groups._new_process_group_helper = native.around(groups._new_process_group_helper, before=before, after=after, argument=2)


class _Before:
    def __init__(self, names, is_alone):
        self.names, self.threads, self.is_alone = set(names), _threads(), is_alone

    def what_is_new(self, names):
        """Returns the new group, its name and its threads.

        Returns None if this rank is not in the group, or if two threads create groups at the same time.
        """
        new = [group for group in names if group not in self.names]
        if len(new) == 1 and self.is_alone:
            return new[0], str(names[new[0]]), _threads() - self.threads
        return None


def _threads():
    return set(os.listdir("/proc/self/task"))


def _tell_group(native, group, name, threads, ranks):
    global _told
    _told += 1
    if _told > MOST_GROUPS:
        _facts.tell(native, "process_groups", f"those made behind the first {MOST_GROUPS} were left out")
        return
    _facts.tell(native, f"process_group.{name}.size", str(group.size()))
    if ranks is not None:
        _facts.tell(native, f"process_group.{name}.ranks", _text(list(ranks) or range(group.size())))
    if getattr(group, "group_desc", ""):  # 2.4
        _facts.tell(native, f"process_group.{name}.description", group.group_desc)
    for thread in threads:
        _facts.tell(native, f"process_group_thread.{thread}", name)


def _text(ranks):
    if len(ranks) <= MOST_RANKS:
        return str(list(ranks))
    return f"[{', '.join(map(str, ranks[:MOST_RANKS - 1]))}, ..., {ranks[-1]}]"
