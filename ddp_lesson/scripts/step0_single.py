import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from ddp_lesson.rank import record

torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
mixed = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
train, test = mixed[:1440], mixed[1440:]
data = TensorDataset(x[train], y[train])
loader = DataLoader(data, batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

step = 0
for epoch in range(20):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        record(step=step, total=20 * len(loader), loss=loss)
        step += 1

with torch.no_grad():
    right = (model(x[test]).argmax(1) == y[test]).sum()
print(f"test accuracy {right / len(test):.1%}")
