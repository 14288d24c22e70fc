"""A chunk whose worker process dies, once, when a part of its result was sent."""

import os
import struct
import sys
from pathlib import Path


def half(path, number, arguments):
    """What takes the place of ``executors._chunk``."""
    died = Path(path + ".died")
    if not died.exists():
        died.touch()
        frame = sys._getframe()
        while "result_queue" not in frame.f_locals:
            frame = frame.f_back
        # as multiprocessing writes a message: its length, and the beginning of it
        os.write(frame.f_locals["result_queue"]._writer.fileno(), struct.pack("!i", 1000) + b"half")
        os._exit(9)
    return b"whole"
