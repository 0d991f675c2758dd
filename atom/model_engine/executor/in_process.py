"""An executor that runs the model in this process, in a thread of its own.

The thread owns everything that touches tensors; batches reach it in order. `launch` therefore returns at once, and the
caller schedules the next step while this one runs (torch releases the interpreter's lock inside its operations).
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from atom.config import Config
from atom.model_engine.batch import ScheduledBatch, StepResult
from atom.model_engine.cpu_threads import (
    has_thread_for_each_core,
    keep_freed_memory,
    num_cpu_threads,
    prepare_environment,
)
from atom.model_engine.executor.base import CacheSpace, Executor
from atom.model_engine.grammars import Grammars
from atom.model_engine.messages import EngineInfo
from atom.sampling_params import AnswerGrammar
from atom.tokenizer import Tokenizer

if TYPE_CHECKING:
    from atom.model_engine.model_runner import ModelRunner, StepOutput
    from atom.model_engine.profiler import Profiler

_Task = tuple[Callable[[], Any], Future[Any]]


class InProcessExecutor(Executor):
    """One device, one worker thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._runner: ModelRunner | None = None
        self._profiler: Profiler | None = None
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._launched: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name="model-runner", daemon=True)
        # Two, so that a refusal need not wait while the one long operation, writing a trace, is at work.
        self._calls = ThreadPoolExecutor(max_workers=2, thread_name_prefix="engine-call")
        self._grammars = Grammars(self._load_tokenizer, config.hf.vocab_size, config.eos_token_ids)
        self._is_shut_down = False

    def _load_tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self._config.model_path, self._config.trust_remote_code)

    def start(self) -> tuple[EngineInfo, CacheSpace]:
        """Load the model in the worker."""
        self._worker.start()
        self._grammars.begin_loading()
        loaded: tuple[EngineInfo, CacheSpace] = self._submit(self._load).result()
        return loaded

    def _load(self) -> tuple[EngineInfo, CacheSpace]:
        if self._config.device != "cuda":
            prepare_environment(self.owns_process and has_thread_for_each_core(self._config.hf, self._config.device))
        # torch takes a second to import, and only the worker needs it.
        import torch

        from atom.model_engine.memory_profile import give_memory_back
        from atom.model_engine.model_runner import ModelRunner, resolve_device, use_own_stream
        from atom.model_engine.profiler import Profiler
        from atom.model_engine.trace_files import worker_folder

        config = self._config
        folder = worker_folder(config.torch_profiler_dir, config.parallel)
        device = resolve_device(config.device)
        give_memory_back(device)  # an engine before this one may have failed to start
        use_own_stream(device)
        if device.type == "cpu":
            torch.set_num_threads(num_cpu_threads(config.hf, torch.get_num_threads()))
        self._profiler = Profiler(folder, config.model, device)
        self._runner = ModelRunner(config, self._grammars)
        if device.type == "cpu":
            keep_freed_memory()
        self._runner.warm_up()
        info = self._runner.info()
        self.waits_for_prompts = device.type == "cpu"
        return info, CacheSpace(info.num_blocks, info.block_size)

    def launch(self, batch: ScheduledBatch) -> None:
        """Queue the step for the worker."""
        self._launched.put(self._submit(lambda: self._run(batch)))

    def _run(self, batch: ScheduledBatch) -> StepOutput:
        runner = self._started
        with self._started_profiler.annotate(batch, runner.graph_batch_size(batch)):
            return runner.run(batch)

    def collect(self) -> StepResult:
        """Wait for the oldest step; raises what it raised."""
        # The copy to the host is made by the caller, while the worker is at the next step.
        result: StepResult = self._launched.get().result().result()
        return result

    def call(self, name: str, arguments: dict[str, str | int | float | bool | None]) -> Future[str]:
        """start_profile answers null, stop_profile a list of one trace (trace_dir, file, elapsed)."""
        operations = {"start_profile": self._start_profile, "stop_profile": self._stop_profile}
        if name not in operations:
            raise ValueError(f"the executor has no operation {name!r}")
        return self._calls.submit(operations[name], **arguments)

    def _start_profile(self) -> str:
        self._submit(self._started_profiler.start).result()
        return json.dumps(None)

    def _stop_profile(self) -> str:
        profiler = self._started_profiler
        recording = self._submit(profiler.stop).result()
        return json.dumps([asdict(profiler.write(recording))])

    def prepare(self, grammar: AnswerGrammar) -> Future[None]:
        """Compile the grammar in a thread of its own."""
        return self._grammars.prepare(grammar)

    def shutdown(self) -> None:
        """End the worker after what it has begun, and give the memory back."""
        if self._is_shut_down:
            return
        self._is_shut_down = True
        self._calls.shutdown(cancel_futures=True)  # before the worker, which they need
        if self._worker.is_alive():
            if self._profiler is not None:
                self._submit(self._profiler.close)
            self._tasks.put(None)
            self._worker.join()
        runner, self._runner, self._profiler = self._runner, None, None
        if runner is not None:
            from atom.model_engine.memory_profile import give_memory_back

            device = runner.device
            runner.shutdown()
            del runner
            give_memory_back(device)
        self._grammars.shutdown()

    @property
    def _started(self) -> ModelRunner:
        if self._runner is None:
            raise RuntimeError("the executor was not started, or has been shut down")
        return self._runner

    @property
    def _started_profiler(self) -> Profiler:
        if self._profiler is None:
            raise RuntimeError("the executor was not started, or has been shut down")
        return self._profiler

    def _submit(self, function: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._tasks.put((function, future))
        return future

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            function, future = task
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            del task, function, future
