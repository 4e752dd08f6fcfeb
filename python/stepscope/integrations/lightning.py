# SPDX-License-Identifier: Apache-2.0
"""For Lightning, installed as lightning or as pytorch_lightning:

    from stepscope.integrations.lightning import StepscopeCallback, StepscopeProfiler

    Trainer(callbacks=[StepscopeCallback()])        # marks the optimizer steps; profiles with StepscopeCallback(settings)
    Trainer(profiler=StepscopeProfiler())           # prints SimpleProfiler's table and records its actions as ranges

Both may be used together. A step is an optimizer step; with gradient accumulation it has several batches.
"""
import sys

import stepscope
from stepscope import _actions
from stepscope._windows import DETAIL
from stepscope.integrations._steps import Steps, metrics, waits_for_batch


def _root():
    """Returns the Lightning package that the program uses."""
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        import pytorch_lightning

        return pytorch_lightning
    try:
        import lightning.pytorch

        return lightning.pytorch
    except ImportError:
        import pytorch_lightning

        return pytorch_lightning


_lightning = _root()
if _lightning.__name__.startswith("lightning"):
    from lightning.pytorch.profilers import PyTorchProfiler, SimpleProfiler
else:
    from pytorch_lightning.profilers import PyTorchProfiler, SimpleProfiler


def _is_worth_results(trainer):
    """Returns true if the results of this step are to be recorded.

    Reading them makes Lightning compute all of them again and wait for the device. They are recorded in steps that
    record operators, and in steps whose results Lightning passes to its loggers.
    """
    recorded, every = stepscope.active(), trainer.log_every_n_steps
    return bool(recorded & DETAIL or recorded and every and trainer.global_step % every == 0)


class StepscopeCallback(_lightning.Callback):
    """Marks steps with trainer.global_step.

    If `settings` is given (from stepscope.from_args()), a profiler also records by their schedule.
    """

    def __init__(self, settings=None):
        super().__init__()
        self.steps = Steps(settings)

    def on_train_start(self, trainer, pl_module):
        self.steps.start()

    def _expect(self, trainer):
        if not isinstance(trainer.profiler, PyTorchProfiler):  # a step would split its range around the wait
            self.steps.expect(trainer.global_step, trainer.train_dataloader)

    def on_train_epoch_start(self, trainer, pl_module):
        self._expect(trainer)

    def on_validation_start(self, trainer, pl_module):
        self.steps.expect_nothing()

    def on_validation_end(self, trainer, pl_module):
        self._expect(trainer)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.steps.begin(trainer.global_step)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step != self.steps.open:
            if _is_worth_results(trainer):
                metrics(trainer.callback_metrics)
            self.steps.end()
            self._expect(trainer)

    def on_train_end(self, trainer, pl_module):
        self.steps.stop()

    def on_exception(self, trainer, pl_module, exception):
        self.steps.stop()


class StepscopeProfiler(SimpleProfiler):
    """A SimpleProfiler that also records its actions as ranges, as stepscope does by itself if the program has no profiler."""

    def start(self, action_name):
        if action_name.endswith("train_dataloader_next"):
            waits_for_batch()
        super().start(action_name)
        _actions.begin(action_name)

    def stop(self, action_name):
        _actions.end(action_name)
        super().stop(action_name)
