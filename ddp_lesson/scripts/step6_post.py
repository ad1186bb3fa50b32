import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
print("argument:", args.local_rank)
print("environment:", os.environ["LOCAL_RANK"])
