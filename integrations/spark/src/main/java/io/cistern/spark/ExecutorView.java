package io.cistern.spark;

import io.cistern.AllocatorStatistics;
import io.cistern.cuda.DriverCapabilities.DeviceCapabilities;
import io.cistern.pressure.SpillStatistics;
import io.cistern.spark.ExecutorFigures.DeviceFigures;
import io.cistern.spark.ExecutorFigures.SpillFigures;

/// Reads the figures of an executor's memory.
record ExecutorView(String executorId, String host, ExecutorMemory memory, RunningTasks tasks) {
    ExecutorFigures figures() {
        return new ExecutorFigures(
                executorId, host, System.currentTimeMillis(), device(), spill(), tasks.figures(), tasks.pools());
    }

    DeviceFigures device() {
        int device = memory.device();
        DeviceCapabilities capabilities =
                memory.driver().capabilities().devices().get(device);
        AllocatorStatistics all = memory.memory().statistics(device);
        return new DeviceFigures(
                device,
                capabilities.name(),
                memory.driver().simulated(),
                memory.configured().spec().toString(),
                memory.deviceBytes(),
                all.requestedBytes(),
                memory.peaked(),
                memory.configured().reservedBytes(device).orElse(-1),
                all.liveBlocks());
    }

    SpillFigures spill() {
        SpillStatistics now = memory.spills().statistics();
        return new SpillFigures(
                now.deviceBytes(),
                now.hostBytes(),
                memory.hostLimitBytes(),
                now.fileBytes(),
                now.spills(),
                now.spilledBytes(),
                now.writtenBytes(),
                now.returnedBytes());
    }
}
