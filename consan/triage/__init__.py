"""Triage of flaky failures: many schedules of one program or kernel (stress), the few delays that a failure needs (reduce), and
the same failure again from a file (replay).

Data flows one way: a subject (what is run) and a request (with which schedule) go to a worker, an outcome comes back (run.py). Workers are
processes of this machine or of a Dask cluster (executors.py); what they return does not depend on where they are. campaign.py counts
outcomes, minimise.py searches among schedules, words.py says what a schedule does.
"""
