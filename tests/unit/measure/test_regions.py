from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

import deep500.measure as measure
from deep500.core.errors import MeasurementError
from deep500.measure.regions import calibrate_regions, collect_regions, region, regions_so_far, reset_regions
from tests.unit.measure.regions_support import FakeClock, fake_clock, times

__all__ = ["fake_clock"]  # a fixture, used by its name


@pytest.fixture(autouse=True)
def no_regions_left_over() -> Iterator[None]:
    reset_regions()
    yield
    reset_regions()


def in_thread(function: Callable[[], None]) -> None:
    """Run a function in a thread to its end; raise what it raises."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def test_nested_regions(fake_clock: FakeClock) -> None:
    with collect_regions() as breakdown:
        for _ in range(2):
            with region("training"):
                fake_clock.go_on(1)
                with region("forward"):
                    fake_clock.go_on(2)
                with region("backward"):
                    fake_clock.go_on(4)
                    with region("forward"):
                        fake_clock.go_on(8)
        with region("test"):
            fake_clock.go_on(16)
        fake_clock.go_on(32)

    assert times(breakdown) == {
        "training": (2, 30, 2),
        "training>forward": (2, 4, 4),
        "training>backward": (2, 24, 8),
        "training>backward>forward": (2, 16, 16),
        "test": (1, 16, 16),
    }
    assert list(times(breakdown))[1:3] == ["training>forward", "training>backward"]
    assert breakdown.elapsed_s == 78


def test_a_region_within_itself(fake_clock: FakeClock) -> None:
    @region("walk")
    def walk(depth: int) -> None:
        fake_clock.go_on(1)
        if depth:
            walk(depth - 1)

    with collect_regions() as breakdown:
        walk(2)

    assert times(breakdown) == {"walk": (1, 3, 1), "walk>walk": (1, 2, 1), "walk>walk>walk": (1, 1, 1)}


def test_very_deep_recursion() -> None:
    def walk(depth: int) -> None:
        with region("walk"):
            if depth:
                walk(depth - 1)

    with collect_regions() as breakdown:
        walk(300)

    assert len(breakdown.rows()) == 301
    assert "[300] walk" in str(breakdown)


def test_one_object_may_be_entered_again_while_it_is_entered(fake_clock: FakeClock) -> None:
    timer = region("again")
    with collect_regions() as breakdown, timer:
        fake_clock.go_on(1)
        with timer:
            fake_clock.go_on(2)
        with timer:
            fake_clock.go_on(4)

    assert times(breakdown) == {"again": (1, 7, 1), "again>again": (2, 6, 6)}


def test_one_object_in_several_threads(fake_clock: FakeClock) -> None:
    timer = region("shared")

    def other() -> None:
        with timer:
            fake_clock.go_on(2)

    with collect_regions() as breakdown, timer:
        in_thread(other)
        fake_clock.go_on(1)

    row = breakdown["shared"]
    assert (row.calls, row.samples_s) == (2, (2, 3))
    assert len(breakdown.rows()) == 1


@pytest.mark.parametrize("error", [ValueError("planted"), KeyboardInterrupt(), GeneratorExit()])
def test_region_that_an_exception_leaves_counts(fake_clock: FakeClock, error: BaseException) -> None:
    def fail() -> None:
        with region("outer"), region("inner"):
            fake_clock.go_on(3)
            raise error

    with collect_regions() as breakdown:
        with pytest.raises(type(error)) as caught:
            fail()
        with region("next"):
            fake_clock.go_on(1)

    assert caught.value is error
    assert times(breakdown) == {"outer": (1, 3, 0), "outer>inner": (1, 3, 3), "next": (1, 1, 1)}


def test_thread_reports_to_the_collection_of_the_process_and_starts_outside_of_regions(fake_clock: FakeClock) -> None:
    def load() -> None:
        with region("load"):
            fake_clock.go_on(2)

    with collect_regions() as breakdown, region("training"):
        in_thread(load)
        in_thread(load)

    assert times(breakdown) == {"training": (1, 4, 4), "load": (2, 4, 4)}


def test_thread_with_a_collection_of_its_own_keeps_its_regions(fake_clock: FakeClock) -> None:
    own: list[Any] = []

    def work() -> None:
        with collect_regions() as breakdown:
            own.append(breakdown)
            with region("work"):
                fake_clock.go_on(2)
        with region("after"):
            fake_clock.go_on(1)

    with collect_regions() as breakdown:
        in_thread(work)
        with region("here"):
            fake_clock.go_on(4)

    assert times(own[0]) == {"work": (1, 2, 2)}
    assert times(breakdown) == {"after": (1, 1, 1), "here": (1, 4, 4)}


def test_no_call_of_any_thread_is_lost() -> None:
    threads, calls = 8, 2500
    start = threading.Barrier(threads)

    def work() -> None:
        start.wait()
        for _ in range(calls):
            with region("work"), region("part"):
                pass

    with collect_regions() as breakdown:
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            assert breakdown.rows() is not None  # reading at the same time disturbs nothing
        for worker in workers:
            worker.join()

    assert breakdown["work"].calls == breakdown["work", "part"].calls == threads * calls
    assert len(breakdown.rows()) == 2


def test_collections_within_each_other(fake_clock: FakeClock) -> None:
    with collect_regions() as outer, region("a"):
        fake_clock.go_on(1)
        with collect_regions() as inner, region("b"):
            fake_clock.go_on(2)
        with region("c"):
            fake_clock.go_on(4)

    assert times(inner) == {"b": (1, 2, 2)}
    assert times(outer) == {"a": (1, 7, 3), "a>c": (1, 4, 4)}
    assert (inner.elapsed_s, outer.elapsed_s) == (2, 7)


def test_without_a_collection_the_process_collects(fake_clock: FakeClock) -> None:
    reset_regions()
    with region("a"):
        fake_clock.go_on(1)
        with collect_regions() as breakdown, region("b"):
            fake_clock.go_on(2)
    in_thread(lambda: region("c")(lambda: fake_clock.go_on(4))())

    first = regions_so_far()
    assert times(breakdown) == {"b": (1, 2, 2)}
    assert times(first) == {"a": (1, 3, 3), "c": (1, 4, 4)}
    assert first.elapsed_s == 7

    reset_regions()
    assert regions_so_far().rows() == []
    assert times(first) == {"a": (1, 3, 3), "c": (1, 4, 4)}


def test_reset_within_a_region_begins_outside_of_it(fake_clock: FakeClock) -> None:
    old = regions_so_far()
    with region("old"):
        fake_clock.go_on(1)
        reset_regions()
        with region("new"):
            fake_clock.go_on(2)

    assert times(old) == {"old": (1, 3, 3)}
    assert times(regions_so_far()) == {"new": (1, 2, 2)}


def test_reset_leaves_collections_alone(fake_clock: FakeClock) -> None:
    with collect_regions() as breakdown, region("a"):
        reset_regions()
        with region("b"):
            fake_clock.go_on(2)
        in_thread(region("thread")(lambda: fake_clock.go_on(1)))

    assert times(breakdown) == {"a": (1, 3, 1), "a>b": (1, 2, 2), "thread": (1, 1, 1)}
    assert regions_so_far().rows() == []


def test_region_that_is_left_after_its_collection_counts(fake_clock: FakeClock) -> None:
    late = region("late")
    with collect_regions() as breakdown:
        late.__enter__()
        fake_clock.go_on(1)
    fake_clock.go_on(2)
    with region("outside"):
        pass
    late.__exit__(None, None, None)

    assert times(breakdown) == {"late": (1, 3, 3)}
    assert breakdown.elapsed_s == 1
    assert times(regions_so_far()) == {"outside": (1, 0, 0)}


def test_a_collection_is_entered_once() -> None:
    collection = collect_regions()
    with collection, pytest.raises(MeasurementError, match=r"entered again; call collect_regions\(\) for each"):
        collection.__enter__()


class TestGenerators:
    def test_region_around_a_yield_counts_what_happens_meanwhile(self, fake_clock: FakeClock) -> None:
        def batches() -> Iterator[int]:
            for number in range(2):
                with region("batch"):
                    fake_clock.go_on(1)
                    yield number

        with collect_regions() as breakdown, region("loop"):
            for _ in batches():
                with region("step"):
                    fake_clock.go_on(4)

        assert times(breakdown) == {"loop": (1, 10, 0), "loop>batch": (2, 10, 2), "loop>batch>step": (2, 8, 8)}

    def test_regions_that_are_left_crosswise(self, fake_clock: FakeClock) -> None:
        def work() -> Iterator[None]:
            with region("a"):
                fake_clock.go_on(1)
                yield

        with collect_regions() as breakdown:
            generator = work()
            next(generator)
            with region("b"):
                fake_clock.go_on(2)
                assert next(generator, "ended") == "ended"
                fake_clock.go_on(4)
                with region("c"):
                    fake_clock.go_on(8)
            with region("d"):
                fake_clock.go_on(16)

        found = times(breakdown)
        assert found["a"] == (1, 3, 0)  # own time is never negative
        assert found["a>b"] == (1, 14, 14)
        assert found["c"] == (1, 8, 8)
        assert found["d"] == (1, 16, 16)

    def test_abandoned_generator_holds_nobody_back(self, fake_clock: FakeClock) -> None:
        def work() -> Iterator[None]:
            with region("inner"):
                yield

        with collect_regions() as breakdown:
            with region("outer"):
                generator = work()
                next(generator)
                fake_clock.go_on(1)
            with region("next"):
                fake_clock.go_on(2)
            del generator
            gc.collect()
            with region("last"):
                pass

        assert times(breakdown) == {"outer": (1, 1, 0), "outer>inner": (1, 3, 3), "next": (1, 2, 2), "last": (1, 0, 0)}

    def test_generator_that_another_thread_closes(self, fake_clock: FakeClock) -> None:
        def work() -> Generator[None, None, None]:
            with region("work"):
                yield

        def close() -> None:
            with region("closing"):
                generator.close()
                with region("more"):
                    fake_clock.go_on(4)

        with collect_regions() as breakdown:
            generator = work()
            next(generator)
            fake_clock.go_on(2)
            in_thread(close)
            with region("next"):
                fake_clock.go_on(1)

        assert times(breakdown) == {
            "work": (1, 2, 2),
            "closing": (1, 4, 0),
            "closing>more": (1, 4, 4),
            "next": (1, 1, 1),
        }

    def test_decorated_generator_counts_each_step_only(self, fake_clock: FakeClock) -> None:
        @region("step")
        def numbers() -> Iterator[int]:
            for number in range(3):
                fake_clock.go_on(1)
                yield number

        with collect_regions() as breakdown:
            found = []
            for number in numbers():
                found.append(number)
                with region("use"):
                    fake_clock.go_on(10)

        assert found == [0, 1, 2]
        assert times(breakdown) == {"step": (4, 3, 3), "use": (3, 30, 30)}  # the last step finds the end

    def test_decorated_generator_takes_and_returns_all_that_one_does(self) -> None:
        log: list[Any] = []

        @region("step")
        def talk() -> Generator[str, Any, str]:
            try:
                log.append((yield "first"))
                try:
                    yield "second"
                except KeyError as error:
                    log.append(error)
                yield "third"
                return "result"
            finally:
                log.append("closed")

        def delegating() -> Generator[str, Any, None]:
            log.append((yield from talk()))

        error = KeyError("planted")
        talking = delegating()
        assert next(talking) == "first"
        assert talking.send("sent") == "second"
        assert talking.throw(error) == "third"
        assert next(talking, "over") == "over"
        assert log == ["sent", error, "closed", "result"]

        log.clear()
        talking = talk()
        next(talking)
        talking.close()
        assert log == ["closed"]
        assert regions_so_far()["step"].calls == 5

    def test_decorated_generator_that_will_not_close_is_told_of(self) -> None:
        @region("step")
        def stubborn() -> Iterator[int]:
            while True:
                with contextlib.suppress(GeneratorExit):
                    yield 1
                    return
                yield 2
                return

        generator = stubborn()
        next(generator)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            generator.close()  # type: ignore[attr-defined]

    def test_error_of_a_decorated_generator_goes_on(self, fake_clock: FakeClock) -> None:
        @region("step")
        def broken() -> Iterator[int]:
            fake_clock.go_on(1)
            raise ValueError("planted")
            yield 1

        with collect_regions() as breakdown, pytest.raises(ValueError, match="planted"):
            next(broken())
        assert times(breakdown) == {"step": (1, 1, 1)}


class TestDecorator:
    def test_every_call_counts(self, fake_clock: FakeClock) -> None:
        @region("add")
        def add(a: int, *, b: int = 2) -> int:
            """Add."""
            fake_clock.go_on(b)
            return a + b

        with collect_regions() as breakdown:
            assert (add(1), add(1, b=3)) == (3, 4)

        assert (add.__name__, add.__doc__) == ("add", "Add.")
        assert breakdown["add"].samples_s == (2, 3)

    def test_methods(self, fake_clock: FakeClock) -> None:
        class Worker:
            @region("work")
            def work(self) -> Worker:
                fake_clock.go_on(1)
                return self

        worker = Worker()
        with collect_regions() as breakdown:
            assert worker.work() is worker
        assert times(breakdown) == {"work": (1, 1, 1)}

    def test_error_goes_on(self, fake_clock: FakeClock) -> None:
        @region("fail")
        def fail() -> None:
            fake_clock.go_on(1)
            raise ValueError("planted")

        with collect_regions() as breakdown, pytest.raises(ValueError, match="planted"):
            fail()
        assert times(breakdown) == {"fail": (1, 1, 1)}

    def test_coroutines_count_until_their_end_each_in_its_own_task(self, fake_clock: FakeClock) -> None:
        async def turn() -> None:
            fake_clock.go_on(1)
            await asyncio.sleep(0)

        @region("task")
        async def task() -> str:
            await turn()
            with region("inner"):
                await turn()
            return "done"

        async def both() -> list[str]:
            with region("all"):
                return await asyncio.gather(task(), task())

        with collect_regions() as breakdown:
            assert asyncio.run(both()) == ["done", "done"]

        found = times(breakdown)
        assert list(found) == ["all", "all>task", "all>task>inner"]
        assert found["all"] == (1, 4, 0)  # the tasks overlap
        assert found["all>task"][0] == found["all>task>inner"][0] == 2

    @pytest.mark.parametrize("thing", [3, None, int, staticmethod(len), classmethod(len)])
    def test_other_things_are_refused(self, thing: Any) -> None:
        with pytest.raises(MeasurementError, match=r"The region 'x' was to time .*; accepted are functions"):
            region("x")(thing)

    def test_asynchronous_generators_are_refused(self) -> None:
        async def numbers() -> Any:
            yield 1

        with pytest.raises(MeasurementError, match='write "with region'):
            region("x")(numbers)


@pytest.mark.parametrize("name", ["", 3, None, b"x", len])
def test_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(MeasurementError, match=r'A region was named .*; accepted is a text, such as region\("forward"'):
        region(name)


def test_region_that_was_not_entered_cannot_be_left() -> None:
    left = region("x")
    with left:
        pass
    with pytest.raises(MeasurementError, match="'x' was left without having been entered"):
        left.__exit__(None, None, None)
    with pytest.raises(MeasurementError, match="'x' was left without having been entered"):
        region("x").__exit__(None, None, None)


class TestSynchronize:
    def test_device_is_idle_before_the_clock_is_read(self, fake_clock: FakeClock) -> None:
        log: list[str] = []

        def synchronize() -> None:
            log.append("wait")
            fake_clock.go_on(10)

        with collect_regions() as breakdown, region("outer"), region("device", synchronize=synchronize):
            log.append("work")
            fake_clock.go_on(1)

        assert log == ["wait", "work", "wait"]
        assert times(breakdown) == {"outer": (1, 21, 10), "outer>device": (1, 11, 11)}

    def test_decorated_function_waits_too(self, fake_clock: FakeClock) -> None:
        log: list[str] = []
        region("device", synchronize=lambda: log.append("wait"))(lambda: log.append("work"))()

        assert log == ["wait", "work", "wait"]

    def test_device_that_fails_leaves_the_region(self, fake_clock: FakeClock) -> None:
        answers: list[Exception | None] = [None, RuntimeError("device lost")]

        def synchronize() -> None:
            error = answers.pop(0)
            if error is not None:
                raise error

        with collect_regions() as breakdown:
            with pytest.raises(RuntimeError, match="device lost"), region("device", synchronize=synchronize):
                fake_clock.go_on(1)
            with region("next"):
                pass

        assert times(breakdown) == {"device": (1, 1, 1), "next": (1, 0, 0)}

    def test_device_that_fails_at_entry_enters_nothing(self) -> None:
        def synchronize() -> None:
            raise RuntimeError("device lost")

        with collect_regions() as breakdown:
            with pytest.raises(RuntimeError, match="device lost"), region("device", synchronize=synchronize):
                pytest.fail("was entered")
            with region("next"):
                pass

        assert list(times(breakdown)) == ["next"]


def test_context_that_was_copied_within_a_region_goes_on_after_its_end(fake_clock: FakeClock) -> None:
    with collect_regions() as breakdown:
        with region("outer"):
            context = contextvars.copy_context()

            def work() -> None:
                with region("work"):
                    fake_clock.go_on(1)

            context.run(work)
        context.run(work)

    assert times(breakdown) == {"outer": (1, 1, 0), "outer>work": (1, 1, 1), "work": (1, 1, 1)}


def test_an_empty_region_costs_little_and_leaves_no_garbage() -> None:
    cost = calibrate_regions()
    assert 0 < cost.inside_s < cost.whole_s < 1e-3

    with region("warm"):
        pass
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            with region("cold"):
                pass
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_calibration_is_seen_by_nobody() -> None:
    calibrate_regions.cache_clear()
    with collect_regions() as breakdown, region("around"):
        calibrate_regions()

    assert [row.path for row in breakdown.rows()] == [("around",)]


def test_names_are_offered_by_the_package() -> None:
    assert measure.region is region
    assert measure.collect_regions is collect_regions
    assert (measure.regions_so_far, measure.reset_regions) == (regions_so_far, reset_regions)
