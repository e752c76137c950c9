"""A library that starts a thread when it is imported."""

import threading
import time

threading.Thread(target=time.sleep, args=[600], daemon=True).start()
