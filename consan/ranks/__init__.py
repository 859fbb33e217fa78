"""`consan run --ranks N`: the ranks of a distributed program in one process, each a thread, on the virtual machine.

`crew` lets one rank run at a time, and decides who goes on when all of them wait; `memory` has what the ranks share. Frameworks reach both
through consan/adapters/distributed.
"""
