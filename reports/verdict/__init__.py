"""From what the engines have found and looked at to the verdict: data in, data out.

- `raw`: findings of several replays of a recorded launch, one for each pair of accesses; `scopes`: those that a scope explains.
- `records`: what both engines have found in a launch, without what others speak for, before it has words. `selection`: the findings of a
  run, from hooks, records, ends of launches and texts.
- `tolerance`: how much a finding counts, where that depends on more than its situation.
- `merging`: one finding for each defect, in the order of the report.
- `relations`: which finding speaks, and which belongs to another one, as data, in the terms of `terms`. `shared`: what the two share.
  `precedence` reads the tables.
- `consequences`: findings in the order and words that their roots give; `causes`: findings with one cause, for display.
- `suppression`: findings that the user has reviewed and excluded.
- `coverage`: for each kernel and area whether it was checked, and why not.
- `conclusion`: a report with its verdict, which follows from findings and coverage, and the exit status; `combination`: of several reports.
"""
