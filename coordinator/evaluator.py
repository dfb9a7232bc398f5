"""Keeps the evaluation process (`evaluate`) alive and asks it one question at a time.

Answers come to a callback on a thread of its own; a process that dies answers its questions with an error and
is started again for the next one. Nothing here imports torch.
"""

import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from coordinator.evaluate import Answer, Question

COMMAND: Final = (sys.executable, "-m", "coordinator.evaluate")
LAST_WORDS: Final = 20


class Evaluator:
    """`answered` is called on a thread of this object, once for each question."""

    def __init__(self, answered: Callable[[Answer], None], command: Sequence[str] = COMMAND) -> None:
        self._answered = answered
        self._command = tuple(command)
        self._questions: deque[Question] = deque()
        self._condition = threading.Condition()
        self._closed = False
        self._asking = False
        self._process: subprocess.Popen[bytes] | None = None
        self._said: deque[str] = deque(maxlen=LAST_WORDS)
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """True while an answer is outstanding."""
        with self._condition:
            return self._asking or bool(self._questions)

    @property
    def pid(self) -> int | None:
        """The process, if it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def ask(self, question: Question) -> None:
        """Queue a question."""
        with self._condition:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="evaluator", daemon=True)
                self._thread.start()
            self._questions.append(question)
            self._condition.notify()

    def close(self) -> None:
        """End the process; questions that are open are not answered any more."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(2.0)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread is not None:
            self._thread.join(5.0)

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._questions and not self._closed:
                    self._condition.wait()
                if self._closed:
                    break
                question = self._questions.popleft()
                self._asking = True
            answer = self._asked(question)
            with self._condition:
                self._asking = False
                if self._closed:
                    break
            self._answered(answer)
        self._end_process()

    def _asked(self, question: Question) -> Answer:
        try:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(question) + b"\n")
                process.stdin.flush()
            line = process.stdout.readline()
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=Answer)
        except (OSError, msgspec.DecodeError) as error:
            self._end_process()
            return Answer(question.id, error=f"the evaluation process failed: {error}")
        return Answer(question.id, error=self._obituary(process))

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._end_process()
            self._said.clear()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
            listener.start()
        return self._process

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self._said.append(line.decode(errors="replace").rstrip()[:500])
        process.stderr.close()

    def _obituary(self, process: "subprocess.Popen[bytes]") -> str:
        try:
            status = process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        self._end_process()
        if status < 0:
            with suppress(ValueError):
                how = f"was ended by {signal.Signals(-status).name}"
                memory = " (out of memory?)" if -status == signal.SIGKILL else ""
                return f"the evaluation process {how}{memory}"
        last = next((line for line in reversed(self._said) if line), "it said nothing")
        return f"the evaluation process ended with status {status}: {last}"

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        if process.poll() is None:
            process.terminate()
        process.wait()
