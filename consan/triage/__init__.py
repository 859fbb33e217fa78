"""Triage of flaky failures: many schedules of one program or kernel (stress), the few delays that a failure needs (reduce), and
a repeat of the failure from a file (replay).

Data flows one way: a subject (what is run) and a request (its schedule) go to a worker, an outcome comes back (run.py). Workers are
processes of this machine or of a Dask cluster (executors.py); results do not depend on the worker. campaign.py counts
outcomes, minimise.py searches among schedules, words.py describes schedules.
"""
