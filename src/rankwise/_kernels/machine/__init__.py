"""Where compiled code comes from: the pack of the installation, the cache of the user, or the compiler.

`jit` has the decorators, `keys` hashes what a kernel is compiled from, `cache` and `pack` hold machine code on disk,
`level` fixes the processor level that code is optimized for, `compile_log` records where code came from, and
`compile_progress` shows what is being compiled.
"""
