"""MLflow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deep500.core.errors import TrainingError
from deep500.core.requirement import Requirement
from deep500.core.stateful import State
from deep500.core.texts import message_of
from deep500.training.events._sink import SinkEvent
from deep500.training.statistics import Outcome, TrainingStatistics
from deep500.training.trainer import Trainer

__all__ = ["MLflowEvent"]

#: How a training ended, in MLflow's words; what is not here failed.
_STATUS = {Outcome.COMPLETED: "FINISHED", Outcome.STOPPED: "FINISHED", Outcome.INTERRUPTED: "KILLED"}


class MLflowEvent(SinkEvent):
    """Sends a run to an MLflow tracking server or store (extra ``mlflow``).

    What the training is (network, framework, optimizer, hyperparameters) becomes the run's parameters; losses,
    accuracies, hyperparameters and throughput its metrics, over the number of steps that are done. A training that goes
    on from a checkpoint goes on with the same run. The program's own active run, if it has one, is left alone.

    Attributes:
        run_id: The run's identifier; ``None`` before the training.
    """

    what = "MLflow run"
    requirement = Requirement("mlflow", "mlflow", ("mlflow", "mlflow-skinny"))

    def __init__(
        self,
        experiment: str = "deep500",
        run_name: str | None = None,
        tracking_uri: str | None = None,
        every_steps: int = 1,
    ) -> None:
        """Set where to.

        Args:
            experiment: Name of the experiment; it is made where there is none.
            run_name: Name of the run; by default MLflow chooses one.
            tracking_uri: Where MLflow keeps runs, such as ``"sqlite:///runs.db"`` or a server's address; by default
                what MLflow is set to.
            every_steps: Number of steps between two losses that are sent.

        Raises:
            TrainingError: An argument is not accepted.
        """
        super().__init__(every_steps)
        self.experiment = experiment
        self.run_name = run_name
        self.tracking_uri = tracking_uri
        self.run_id: str | None = None
        self._client: Any = None

    def _prepare(self, runner: Trainer, stats: TrainingStatistics) -> None:
        from mlflow.tracking import MlflowClient

        try:
            self._client = MlflowClient(tracking_uri=self.tracking_uri)
            found = self._client.get_experiment_by_name(self.experiment)
            self._experiment_id = found.experiment_id if found else self._client.create_experiment(self.experiment)
        except Exception as error:  # its own errors, and those of whatever it stores runs in
            raise TrainingError(
                f"MLflow cannot keep runs at {self.tracking_uri or 'its default place'}: {message_of(error)}"
            ) from error
        self.run_id = None

    def _send(self, step: int, values: dict[str, float]) -> None:
        run_id = self._run()
        import mlflow.entities

        now_ms = _now_ms()
        metrics = [mlflow.entities.Metric(name, value, now_ms, step) for name, value in values.items()]
        self._client.log_batch(run_id, metrics=metrics)

    def _run(self) -> str:
        if self.run_id is None:
            self.run_id = str(self._client.create_run(self._experiment_id, run_name=self.run_name).info.run_id)
            for name, value in self._description.items():
                self._client.log_param(self.run_id, name, value)
        return self.run_id

    def _end(self, stats: TrainingStatistics) -> None:
        if self.run_id is not None:
            self._client.set_terminated(self.run_id, _STATUS.get(stats.outcome, "FAILED"))

    def _own_state(self) -> State:
        return {"run_id": self.run_id}

    def _own_restore(self, state: Mapping[str, Any]) -> None:
        self.run_id = state["run_id"]
        if self.run_id is not None:
            self._client.update_run(self.run_id, status="RUNNING")


def _now_ms() -> int:
    import datetime

    return int(datetime.datetime.now(datetime.timezone.utc).timestamp() * 1000)
