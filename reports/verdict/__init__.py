"""From what the engines have found and looked at to the verdict: data in, data out.

- `raw`: findings of several replays of a recorded launch, one for each pair of accesses; `scopes`: those that a scope explains.
- `tolerance`: findings that current hardware and shipped libraries go on with become warnings.
- `merging`: one finding for each defect, in the order of the report.
- `relations`: which finding speaks, and which belongs to another one, as data. `shared`: what the two share. `precedence` reads them.
- `consequences`: findings in the order and words that their roots give; `causes`: findings with one cause, for display.
- `suppression`: findings that the user has reviewed and excluded.
- `coverage`: for each kernel and area whether it was checked, and why not.
- `conclusion`: a report with its verdict, which follows from findings and coverage, and the exit status; `combination`: of several reports.
"""
