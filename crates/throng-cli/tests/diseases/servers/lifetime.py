"""How long a server lives: as long as its standard input."""

import os
import threading


def end_with_stdin():
    """Ends this process with its standard input, and by that those whose inputs it holds."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait():
    while os.read(0, 4096):
        pass
    os._exit(0)
