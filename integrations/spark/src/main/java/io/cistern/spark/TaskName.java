package io.cistern.spark;

import java.io.Serializable;
import org.apache.spark.TaskContext;

/// Which task of which stage.
///
/// @param stage the stage's id
/// @param stageAttempt the stage's attempt, from 0
/// @param partition the partition that it works on
/// @param attempt the attempt at that, from 0
/// @param id the number that no other attempt of the application has
public record TaskName(int stage, int stageAttempt, int partition, int attempt, long id) implements Serializable {
    static TaskName of(TaskContext context) {
        return new TaskName(
                context.stageId(),
                context.stageAttemptNumber(),
                context.partitionId(),
                context.attemptNumber(),
                context.taskAttemptId());
    }

    /// As Spark's logs have it.
    @Override
    public String toString() {
        return "task " + partition + "." + attempt + " in stage " + stage + "." + stageAttempt + " (TID " + id + ")";
    }
}
