package io.cistern.examples.spark.columns;

import io.cistern.spark.TaskMemory;
import java.io.Serializable;
import java.util.Iterator;

/// The work of a task on the batches of its partition.
@FunctionalInterface
public interface ColumnsFunction extends Serializable {
    /// Does the work. The function must close the batches that it takes. It owns a batch that it returns until
    /// the caller takes it.
    ///
    /// @param batches the partition's rows; each call to `next` brings some to the device
    /// @param memory the task's memory, within [TaskMemory#call] already
    /// @return batches of the output's schema
    /// @throws Exception if the work fails; the task fails then
    Iterator<DeviceColumns> apply(Iterator<DeviceColumns> batches, TaskMemory memory) throws Exception;
}
