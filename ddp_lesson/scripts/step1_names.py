import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()
print("training")
print("trained", opt.epochs, "epochs")  # noqa: F821
