# SPDX-License-Identifier: Apache-2.0
"""For the Trainer of transformers and classes derived from it (trl):

    from stepscope.integrations.transformers import StepscopeCallback

    trainer = Trainer(..., callbacks=[StepscopeCallback()])

The callback marks the optimizer steps. StepscopeCallback(stepscope.from_args(arguments)) also profiles by the options
of add_arguments() and prints the messages that profiling guides show.
"""
from transformers import TrainerCallback

import stepscope
from stepscope.integrations._steps import Steps, metrics


class StepscopeCallback(TrainerCallback):
    def __init__(self, settings=None, **options):
        if settings is None and options:
            from stepscope.arguments import Settings

            settings = Settings(enabled=True, **options)
        self.settings = settings
        self.steps = Steps(settings)

    def on_train_begin(self, args, state, control, **kwargs):
        self.steps.stop()  # an earlier training may have ended with an exception
        self.steps.start()
        if self.steps.prof is not None:
            print(f"PyTorch Profiler initialized. Traces will be saved to: {self.settings.output_dir}")
            print(f"Profiler schedule: wait={self.settings.wait}, warmup={self.settings.warmup}, active={self.settings.active}, "
                  f"repeat={self.settings.repeat}")

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.steps.expect(state.global_step, kwargs.get("train_dataloader"))

    def on_step_begin(self, args, state, control, **kwargs):
        self.steps.begin(state.global_step)

    def on_step_end(self, args, state, control, **kwargs):
        self.steps.end()
        if self.settings is not None:
            self.settings.log_memory(state.global_step)
        self.steps.expect(state.global_step, kwargs.get("train_dataloader"))

    def on_log(self, args, state, control, logs=None, **kwargs):
        metrics(logs)

    def on_train_end(self, args, state, control, **kwargs):
        was_profiled = self.steps.prof is not None
        self.steps.stop()
        if was_profiled:
            directory = self.settings.output_dir
            print(f"Profiling complete! Traces saved to: {directory}\n\nTo view traces, run:\n  tensorboard --logdir={directory}")

    def on_save(self, args, state, control, **kwargs):
        stepscope.mark("checkpoint saved")
