# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, where no launcher said it in the environment: `torch.multiprocessing.spawn`, notebooks."""


def watch(torch, native):
    if torch.distributed.is_available():
        groups = torch.distributed.distributed_c10d

        def tell(group, raised):
            if raised is None and group is not None:
                native.torch_rank(group.rank(), group.size())

        groups._update_default_pg = native.around(groups._update_default_pg, after=tell)
