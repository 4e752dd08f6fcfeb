# SPDX-License-Identifier: Apache-2.0
"""For accelerate:

    from stepscope.integrations.accelerate import ProfileKwargs, StepscopeTracker

    accelerator = Accelerator(kwargs_handlers=[ProfileKwargs(record_shapes=True)], log_with=[StepscopeTracker()])
    with accelerator.profile() as prof:         # stepscope records instead of torch.profiler
        ...
    accelerator.log({"loss": loss}, step=n)     # adds results to the recording
"""
from accelerate.tracking import GeneralTracker
from accelerate.utils import ProfileKwargs as _ProfileKwargs

import stepscope
from stepscope.integrations._steps import metrics


class ProfileKwargs(_ProfileKwargs):
    """Replaces accelerate's ProfileKwargs; it has the same fields."""

    @property
    def __class__(self):  # Accelerator() compares the class of a handler instead of calling isinstance()
        return _ProfileKwargs

    def build(self):
        from stepscope.profiler import profile, schedule

        return profile(activities=self.activities,
                       schedule=schedule(**self.schedule_option) if self.schedule_option is not None else None,
                       on_trace_ready=self.on_trace_ready, record_shapes=self.record_shapes, profile_memory=self.profile_memory,
                       with_stack=self.with_stack, with_flops=self.with_flops, with_modules=self.with_modules)


class StepscopeTracker(GeneralTracker):
    """Records hyperparameters as facts of the recording and logged numbers as results of the step."""

    name = "stepscope"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, run_name="run", **kwargs):
        super().__init__()
        self.run_name = run_name

    @property
    def tracker(self):
        return stepscope

    def store_init_configuration(self, values):
        for name, value in values.items():
            stepscope.metadata(f"config.{name}", str(value))

    def log(self, values, step=None, **kwargs):
        metrics(values)

    def finish(self):
        stepscope.flush()
