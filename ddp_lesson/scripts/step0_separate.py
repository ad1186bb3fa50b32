import os

x = 0
if os.environ["RANK"] == "0":
    x = 42
print("x =", x)
