delay(1000, 0.1)
