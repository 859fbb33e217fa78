"""The contract between the passes, the shadow runtime, the reports and the host: the only source of their common layouts.

`variant` says what a module needs of the runtime, `sizes` how many of everything there are, `bits` how words are packed, `records` what
lies in memory, `geometry` where, `events` what a finding is, `hooks` how the kernel calls the runtime. `header` makes the C++ text of all
that. Nothing here imports anything else of ours.
"""
