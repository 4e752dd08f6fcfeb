# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, where no launcher said it in the environment (`torch.multiprocessing.spawn`, notebooks); its process groups,
and which threads work for each.

gloo executes the collectives of a group in threads that it starts while the group is made, and that work for no other. So the threads that
there are before and after tell what a thread's collectives are of, and the collectives themselves cost nothing more.
"""
import os
from _thread import get_ident

from stepscope import _facts

MOST_GROUPS = 1000  # that are told: each is a few names in the recording
MOST_RANKS = 30     # of a group that are written: of more the first ones and the last, as torch.profiler does

_making = {}  # thread that makes a group -> what there was before
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
    # by its place: the ranks, none for the group of all
    groups._new_process_group_helper = native.around(groups._new_process_group_helper, before=before, after=after, argument=2)


class _Before:
    def __init__(self, names, is_alone):
        self.names, self.threads, self.is_alone = set(names), _threads(), is_alone

    def what_is_new(self, names):
        """The group, its name and its threads; None: this rank is not in it, or two threads make groups at the same time."""
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
