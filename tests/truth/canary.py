# SPDX-License-Identifier: Apache-2.0
"""metrics.json of rlhf-canary with known numbers, also of failed and odd runs."""
import copy
import json

BASE = {"run_id": "dpo_1795244589_a1b2c3d4", "timestamp": "2026-11-21T07:03:09.412000", "duration_seconds": 512.3,
        "env": {"python_version": "3.12.3", "torch_version": "2.11.0+cu130", "cuda_available": True, "cuda_version": "13.0", "gpu_name": "Tesla T4",
                "gpu_count": 1, "gpu_memory_gb": 14.74, "platform": "Linux", "platform_version": "6.18", "transformers_version": "4.44.2", "trl_version": None,
                "fingerprint_hash": "9b1d2c3e"},
        "config": {"model_name": "EleutherAI/pythia-70m", "max_steps": 80, "batch_size": 2, "gradient_accumulation_steps": 4, "max_length": 256,
                   "learning_rate": 5e-05, "beta": 0.1, "dataset_name": "Anthropic/hh-rlhf", "dataset_size": 512, "seed": 42},
        "perf": {"step_time": {"count": 70, "mean": 1.0, "median": 0.99, "p50": 0.99, "p95": 1.07, "p99": 1.14, "min": 0.95, "max": 1.24, "std": 0.01},
                 "approx_tokens_per_sec": 2048.0, "max_mem_mb": 8000.0, "gpu_utilization_avg": 83.2, "dataloader_wait_pct": 4.1},
        "stability": {"nan_steps": 0, "inf_steps": 0, "loss_values": [0.69, 0.65], "grad_norm_values": [1.2], "final_loss": 0.61, "loss_diverged": False},
        "profiler": None, "status": "completed"}


def metrics(run=1, time=1.0, memory=0.0, tokens=None, **changes):
    """Returns the metrics of a run.

    time is a factor of all times, memory is added MB. changes maps paths such as 'stability.nan_steps' to values; the
    value "REMOVE" removes the key.
    """
    d = copy.deepcopy(BASE)
    d["run_id"] = f"dpo_{1795244589 + run}_a1b2c3d{run % 10}"
    d["timestamp"] = f"2026-11-{1 + run % 28:02d}T07:{run % 60:02d}:09.412000"
    for k in d["perf"]["step_time"]:
        if k != "count":
            d["perf"]["step_time"][k] *= time
    d["perf"]["approx_tokens_per_sec"] /= time
    if tokens is not None:
        d["perf"]["approx_tokens_per_sec"] = 2048.0 * tokens
    d["perf"]["max_mem_mb"] += memory
    for path, value in changes.items():
        at = d
        *up, last = path.split(".")
        for u in up:
            at = at[u]
        if value == "REMOVE":
            at.pop(last, None)
        else:
            at[last] = value
    return d


def write(path, d):
    with open(path, "w") as f:
        json.dump(d, f, indent=2)
    return path
