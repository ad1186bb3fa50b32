import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(1, 1, bias=False)
        self.spare = nn.Linear(1, 1, bias=False)
        nn.init.ones_(self.used.weight)

    def forward(self, x):
        return self.used(x)


dist.init_process_group("gloo")
x = torch.tensor([[dist.get_rank() + 1.0]])
for frozen in False, True:
    print("spare is frozen" if frozen else "spare is not frozen")
    net = Net()
    net.spare.requires_grad_(not frozen)
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        try:
            loss = model(x).sum()
        except RuntimeError as error:
            print(f"  step {step}, forward: {str(error).partition('. ')[0]}.")
            print(f"  {str(error).splitlines()[-2]}")
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"  step {step}: gradient {net.used.weight.grad.item()}, weight {net.used.weight.item():.2f}")
dist.destroy_process_group()
