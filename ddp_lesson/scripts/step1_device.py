import torch

device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
x = torch.ones(2, device=device)
print(x.sum().item())
