"""The rules of tests/conftest.py, each seen to fail a test that breaks it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT

BROKEN_TESTS = """
import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

running = []
stop = threading.Event()


@pytest.fixture
async def server():
    task = asyncio.create_task(asyncio.Event().wait(), name="of a fixture")
    yield task
    task.cancel()


async def test_clean_with_a_fixture_that_has_a_task(server):
    await asyncio.create_task(asyncio.sleep(0))


async def test_clean_with_a_task_that_is_about_to_end():
    running.append(asyncio.create_task(asyncio.sleep(0.01)))


async def test_clean_with_threads_of_the_loop():
    await asyncio.to_thread(int)


def test_clean_with_a_daemon_thread():
    threading.Thread(target=stop.wait, daemon=True).start()


async def test_leaks_a_task():
    running.append(asyncio.create_task(asyncio.Event().wait(), name="forgotten"))


@settings(max_examples=1)
@given(st.none())
async def test_leaks_a_task_of_an_example(value):
    running.append(asyncio.create_task(asyncio.Event().wait(), name="of an example"))


def test_leaks_a_thread():
    threading.Thread(target=stop.wait, name="left behind").start()


def test_clean_at_the_end():
    stop.set()
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run the broken tests under our conftest in a process of their own; return what it says."""
    folder: Path = tmp_path_factory.mktemp("broken")
    (folder / "test_broken.py").write_text(BROKEN_TESTS)
    command = [
        *(sys.executable, "-m", "pytest", str(folder), "-p", "tests.conftest", "-rA", "--tb=short"),
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-p", "no:cacheprovider"),
        *("-o", "asyncio_default_fixture_loop_scope=function"),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("test", "complaint"),
    [
        ("test_leaks_a_task", "1 tasks still run:\nforgotten"),
        ("test_leaks_a_task_of_an_example", "1 tasks still run:\nof an example"),
        ("test_leaks_a_thread", "threads still run: left behind"),
    ],
)
def test_a_test_that_leaves_something_behind_fails(report: str, test: str, complaint: str) -> None:
    """WEIR-066: the report names the test and what it left."""
    assert re.search(rf"^ERROR \S*::{test}\b", report, re.MULTILINE), report
    assert complaint in report


def test_a_test_that_leaves_nothing_behind_passes(report: str) -> None:
    """WEIR-066: tasks of fixtures, tasks that end at once, daemon and executor threads are fine."""
    assert len(re.findall(r"^ERROR .*::test_leaks", report, re.MULTILINE)) == 3, report
    assert not re.search(r"^(ERROR|FAILED) .*::test_clean", report, re.MULTILINE), report
    assert len(re.findall(r"^PASSED .*::test_clean", report, re.MULTILINE)) == 5, report
