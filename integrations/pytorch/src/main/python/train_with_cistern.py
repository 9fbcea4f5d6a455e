"""A training loop on Cistern's memory: importing cistern_torch and calling enable() is all that it takes.

    PYTHONPATH=python python3 python/train_with_cistern.py        # in the folder of a distribution
"""

import cistern_torch
import torch

cistern_torch.enable()

model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(256, 512, device="cuda")
labels = torch.randint(0, 10, (256,), device="cuda")
for step in range(50):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"step {step + 1}: loss {loss.item():.4f}")

stats = cistern_torch.memory_stats()
print(f"{stats['allocation.all.allocated']} allocations, at most {stats['requested_bytes.all.peak']} bytes at once")
cistern_torch.snapshot("training.json")  # ./cistern report training.json -o training.html
