import time

print("I will not stop by myself")
while True:
    time.sleep(1)
