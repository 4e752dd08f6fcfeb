"""Trains a small language model on random tokens."""
import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--decode-ms", type=float, default=3)
chosen = parser.parse_args()


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 8 * chosen.steps

    def __getitem__(self, index):
        time.sleep(chosen.decode_ms / 1000)  # stands for reading and decoding a file
        return torch.randint(1000, (64,))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Embedding(1000, 128), Block(128), Block(128), nn.Linear(128, 1000))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(Tokens(), batch_size=8, num_workers=chosen.workers)
for step, tokens in enumerate(loader):
    loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.3f}")
