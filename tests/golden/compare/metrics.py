"""A metrics.json of rlhf-canary: metrics.py NAME MEAN_S BATCH ACCUMULATION TOKENS_PER_S MEMORY_MB [NAN_STEPS [CUDA_MS CPU_MS COPY_MS]]"""
import json
import sys

name, mean, batch, accumulation, tokens, memory, *more = sys.argv[1:]
mean = float(mean)
profiler = None
if more[1:]:
    cuda, cpu, copies = map(float, more[1:])
    profiler = {"trace_path": "profiler_traces/x/trace.json", "cuda_time_total_ms": cuda, "cpu_time_total_ms": cpu,
                "self_cuda_time_total_ms": cuda,
                "top_cuda_ops": [{"name": "aten::mm", "self_cuda_time_ms": 512.4, "count": 4320},
                                 {"name": f"aten::only_{name}", "self_cuda_time_ms": 7.5, "count": 20},
                                 {"name": "aten::copy_", "self_cuda_time_ms": copies, "count": 4320}],
                "top_cpu_ops": [{"name": "aten::to", "self_cpu_time_ms": 0.25 * cpu, "count": 8800}]}
print(json.dumps({
    "run_id": f"{name}_1795244589_a1b2c3d4", "timestamp": "2026-11-21T07:03:09.412000", "duration_seconds": 512.3,
    "env": {"python_version": "3.12.3", "torch_version": "2.11.0+cu130", "cuda_available": True, "cuda_version": "13.0",
            "gpu_name": "Tesla T4", "gpu_count": 1, "gpu_memory_gb": 14.74, "platform": "Linux", "platform_version": "6.18",
            "transformers_version": "4.44.2", "trl_version": None, "fingerprint_hash": "9b1d2c3e"},
    "config": {"model_name": "EleutherAI/pythia-70m", "max_steps": 80, "batch_size": int(batch),
               "gradient_accumulation_steps": int(accumulation), "max_length": 256, "learning_rate": 5e-05, "beta": 0.1,
               "dataset_name": "Anthropic/hh-rlhf", "dataset_size": 512, "seed": 42},
    "perf": {"step_time": {"count": 70, "mean": mean, "median": mean * 0.99, "p50": mean * 0.99, "p95": mean * 1.07,
                           "p99": mean * 1.14, "min": mean * 0.95, "max": mean * 1.24, "std": mean * 0.036},
             "approx_tokens_per_sec": float(tokens), "max_mem_mb": float(memory), "gpu_utilization_avg": 83.2,
             "dataloader_wait_pct": 4.1},
    "stability": {"nan_steps": int(more[0]) if more else 0, "inf_steps": 0, "loss_values": [0.69, 0.65], "grad_norm_values": [1.2],
                  "final_loss": 0.61, "loss_diverged": False},
    "profiler": profiler, "status": "completed"}, indent=2))
