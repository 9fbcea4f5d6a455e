package io.cistern.spark;

import java.io.Serializable;
import org.apache.spark.TaskContext;

/// Names a task and its stage.
///
/// @param stage the stage's id
/// @param stageAttempt the stage's attempt, from 0
/// @param partition the task's partition
/// @param attempt the attempt at that partition, from 0
/// @param id the attempt's id, unique in the application
public record TaskName(int stage, int stageAttempt, int partition, int attempt, long id) implements Serializable {
    static TaskName of(TaskContext context) {
        return new TaskName(
                context.stageId(),
                context.stageAttemptNumber(),
                context.partitionId(),
                context.attemptNumber(),
                context.taskAttemptId());
    }

    /// Returns the name in the form of Spark's logs.
    @Override
    public String toString() {
        return "task " + partition + "." + attempt + " in stage " + stage + "." + stageAttempt + " (TID " + id + ")";
    }
}
