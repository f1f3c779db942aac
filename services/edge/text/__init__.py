"""The text frontends: what turns arriving text into segments that may be spoken.

Owns nothing itself; `registry` is where a session starts, `frontend` says what a frontend is.
Every module below is pure: no input or output, no clock, no tasks, no log.
"""
