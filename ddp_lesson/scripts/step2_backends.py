import torch.distributed as dist

for device in ("cpu", "cuda"):
    print(device, "->", dist.get_default_backend_for_device(device))
dist.init_process_group("gloo")
print("this group uses", dist.get_backend())
dist.destroy_process_group()
