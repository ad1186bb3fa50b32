import torch

device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
print("this rank keeps its tensors on", torch.ones(1, device=device).device)
