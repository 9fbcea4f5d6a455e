package io.cistern.spark.barrier;

import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkException;

/// Exchanges texts between the tasks of a barrier stage through Spark's driver.
final class BarrierExchange {
    private BarrierExchange() {}

    /// @return the texts of all tasks, by partition
    /// @throws BrokenStageException if a task is missing
    static String[] allGather(BarrierTaskContext context, String own) {
        try {
            return context.allGather(own);
        } catch (Exception failure) { // Spark's, which it does not declare
            if (failure instanceof SparkException || context.isInterrupted()) {
                throw new BrokenStageException(
                        "the tasks of stage " + context.stageId() + " did not all reach the exchange", failure);
            }
            throw failure;
        }
    }
}
