"""Native programs under `consan run`: their kernels are taken at the CUDA driver.

A library in C (`source/interposer.c` and its parts, compiled at first use, loaded with LD_PRELOAD) stands between the program and
`libcuda.so.1`. It forwards and decides nothing. The `consan run` process is its server:

    program --- cuLibraryLoadData(image) ---> interposer --- IMAGE ---> server: finds the PTX, instruments, assembles
            <------------ handle ----------- driver(cubin) <-- cubin --
            --- cuLaunchKernel --------------> interposer --- LAUNCH --> server: makes a log
            <----------- result ------------- driver(same arguments) --- LAUNCHED -> server: waits, judges the log
            --- exit ------------------------> interposer --- COLLECT -> server: waits, reads the tables, makes the report

- The image is exchanged where it is loaded, so the program's handles, its `__device__` variables and its launches stay as they are.
  Nothing is added to a kernel's parameters: hooks find the shadow through the module's control block.
- Device memory lives in the program's contexts. So the backend of a session is the GPU's (`backends/cuda.py`), over a driver library
  (`remote.py`) whose functions are orders to the program: call this function with these arguments. A thread of the interposer obeys
  them, with the order's context current in that thread only; consan's own work goes on a stream of its own.
- Each context that loads or launches has a session (`sessions.py`), and launches of all are compared. As a rule a context is a GPU's.
- Device code of several modules that are linked, at build (`-rdc=true`) or at run time, is joined as PTX before it is instrumented. Machine
  code that the program has had linked, by the driver or nvJitLink, is known by its bytes when it is loaded.
  The same holds for machine code that `ptxas` or `nvlink` makes in a process of the program, or nvPTXCompiler in a library that shows its
  functions.
- The ring of findings is memory that both processes map: what a program has found before it is killed is read after its death. Counts
  are lost then, and the report says so.
- A library (`cuLibraryLoadData`) belongs to no context. It gets its control block in that in which it is loaded, or the runtime's on the
  first device, and the places of its logs in each one in which it is launched. Called hooks see no launch, and have one context.
- Each process of the program that uses the driver has its own connection and its own sessions. The reports are merged.
- A recorded launch waits for its log, and consan for the launch (`launches.py`). A launch that no log can be given to runs as it is, and is
  listed as unchecked.
- Without the server a recorded kernel has no log, so a launch of it fails once the server has gone.
- The interposer counts launches by handle, in memory that both processes map. Handles are known by the look-ups that the program has made
  (`cuLibraryGetKernel`, ...). A kernel that was launched and not instrumented is listed.
- The socket lies in a folder with a random name that only the user can enter, and is the user's alone (0600). Lengths are checked on both
  sides; PTX and fat binaries are data of a program, and errors in them end its connection at most.

Not handled: link-time optimisation, cubins that another program made, GPUs of several architectures in a process (an image is made for
that of the context in which it is loaded), launches after the program's exit handlers, and time limits for a launch.
"""
