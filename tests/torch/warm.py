# SPDX-License-Identifier: Apache-2.0
"""A Python that imports PyTorch once and forks for each program that it is asked to run, which saves seconds per program: see warm() of
torch_tools.py. To the observer it is a program that calls `stepscope.auto()` behind `import torch`. `warm.py SOCKET`: a descriptor.

A program has its own environment, folder, arguments, paths and output, and ends as it wants to; below its stack there is a frame of ours.
"""
import array
import gc
import json
import os
import socket
import sys


def receive(asked):
    """socket.recv_fds(), for Python 3.8, too."""
    request, sent, _, _ = asked.recvmsg(1 << 20, socket.CMSG_SPACE(2 * array.array("i").itemsize))
    return request, [file for _, _, data in sent for file in array.array("i", data)]


def serve(asked):
    """Until nobody asks any more; in a child it returns what is to be run."""
    import torch
    if not torch.__version__.startswith("1."):
        import torch._dynamo  # noqa: F401  what the first optimizer imports
    gc.freeze()
    while True:
        request, files = receive(asked)
        if not request:
            sys.exit()
        child = os.fork()
        if child == 0:
            asked.close()
            for stream, file in zip((1, 2), files):
                os.dup2(file, stream)
                os.close(file)
            return json.loads(request)
        for file in files:
            os.close(file)
        asked.send(str(os.waitpid(child, 0)[1]).encode())


def become(folder, environment, arguments):
    """The program's code, and the names it begins with."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    is_command = arguments[0] == "-c"
    sys.argv[:] = arguments[:1] + arguments[1 + is_command:]
    sys.path[0] = "" if is_command else os.path.dirname(arguments[0])
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(":"))
    main = sys.modules["__main__"] = type(sys)("__main__")
    if is_command:
        return compile(arguments[1], "<string>", "exec"), vars(main)
    main.__file__ = arguments[0]
    with open(arguments[0], encoding="utf-8") as file:
        return compile(file.read(), arguments[0], "exec"), vars(main)


def observe(package):
    sys.path.append(package)
    import stepscope
    sys.path.remove(package)
    stepscope.auto()


if __name__ == "__main__":
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    code, names = become(*request["program"])
    if request["package"]:
        observe(request["package"])
    exec(code, names)
