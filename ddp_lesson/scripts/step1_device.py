import torch

device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
print("tensors of this script lie on", torch.ones(1, device=device).device)
