# SPDX-License-Identifier: Apache-2.0
"""DPO with LoRA on a small GPT-NeoX (trl), for bench/torch_dpo: `torch_dpo_train.py bare|ours|torch STEPS WARMUP DIRECTORY`.

Trains WARMUP + STEPS steps. `torch` profiles the last STEPS steps with torch.profiler (shapes and memory) and makes the
trace and the table. `ours` ends the recording where the others end their window. Nothing is downloaded. The last line
is JSON.
"""
import json
import os
import pydoc_data.topics
import resource
import sys
import time

for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[name] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "2")

import torch  # noqa: E402
from datasets import Dataset  # noqa: E402
from peft import LoraConfig  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast, TrainerCallback  # noqa: E402
from trl import DPOConfig, DPOTrainer  # noqa: E402

PAIRS, BATCH, ACCUMULATION, LENGTH = 512, 2, 4, 256
TEMPLATE = "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}<eos>{% endfor %}"


def tokenizer_of(text):
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<pad>", "<bos>", "<eos>", "<unk>"]
    inner.train_from_iterator(text, trainers.BpeTrainer(vocab_size=2000, special_tokens=special, show_progress=False))
    made = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<bos>", eos_token="<eos>", unk_token="<unk>")
    made.chat_template = TEMPLATE
    return made


def pairs_of(text):
    words = " ".join(text).split()
    piece = lambda start, count: " ".join(words[start % (len(words) - count):][:count])
    return Dataset.from_list([{"prompt": piece(i * 31, 24), "chosen": piece(i * 57, 80), "rejected": piece(i * 83 + 7, 70)}
                              for i in range(PAIRS)])


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Window(TrainerCallback):
    """Measures the steps WARMUP .. WARMUP + STEPS - 1 and the work after them."""

    def __init__(self, mode, warmup, directory):
        self.mode, self.warmup, self.directory = mode, warmup, directory
        self.result, self.profiler, self.start = {"mode": mode}, None, 0.0

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step != self.warmup:
            return
        if self.mode == "torch":
            from torch.profiler import ProfilerActivity, profile

            self.profiler = profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True)
            self.profiler.start()
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        stamps = [time.perf_counter()]
        if self.mode == "torch":
            self.profiler.stop()
            stamps.append(time.perf_counter())
            self.profiler.export_chrome_trace(f"{self.directory}/trace.json")
            stamps.append(time.perf_counter())
            table = self.profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=50)
            stamps.append(time.perf_counter())
            self.result["table_lines"] = table.count("\n")
        elif self.mode == "ours":
            import stepscope

            stepscope.shutdown()
            stamps.append(time.perf_counter())
        self.result.update(window_s=stamps[0] - self.start, after_s=[b - a for a, b in zip(stamps, stamps[1:])], peak_mb=peak_mb(),
                           steps=state.global_step)


def main():
    mode, steps, warmup, directory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.manual_seed(1)
    text = [topic for _, topic in sorted(pydoc_data.topics.topics.items())]
    tokenizer = tokenizer_of(text)
    config = GPTNeoXConfig(vocab_size=2000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512,
                           max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    window = Window(mode, warmup, directory)
    arguments = DPOConfig(output_dir=f"{directory}/out", per_device_train_batch_size=BATCH, gradient_accumulation_steps=ACCUMULATION,
                          max_steps=warmup + steps, max_length=LENGTH, logging_steps=10, save_strategy="no", report_to=[], use_cpu=True,
                          disable_tqdm=True, seed=1, gradient_checkpointing=False, bf16=False)
    lora = LoraConfig(r=16, lora_alpha=32, target_modules=["query_key_value"], task_type="CAUSAL_LM")
    trainer = DPOTrainer(model=GPTNeoXForCausalLM(config), args=arguments, train_dataset=pairs_of(text), processing_class=tokenizer,
                         peft_config=lora, callbacks=[window])
    loss = trainer.train().training_loss
    print(json.dumps({**window.result, "loss": loss}))


if __name__ == "__main__":
    main()
