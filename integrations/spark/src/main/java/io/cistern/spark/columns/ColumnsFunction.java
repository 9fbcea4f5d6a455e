package io.cistern.spark.columns;

import io.cistern.spark.TaskMemory;
import java.io.Serializable;
import java.util.Iterator;

/// What a task does to the batches of its partition.
@FunctionalInterface
public interface ColumnsFunction extends Serializable {
    /// Does it. Batches that it has taken are its own to close; so are those that it returns until they are taken.
    ///
    /// @param batches the partition's rows; each call of `next` brings some to the device
    /// @param memory the task's memory, in [TaskMemory#call] already
    /// @return batches of the output's schema
    /// @throws Exception as it likes; the task fails then
    Iterator<DeviceColumns> apply(Iterator<DeviceColumns> batches, TaskMemory memory) throws Exception;
}
