package io.cistern.cli.replay;

import io.cistern.cli.trace.Trace;
import io.cistern.cuda.CudaDriver;
import java.util.Arrays;
import java.util.stream.IntStream;

/// Maps the streams of a trace to streams of the driver, each on the device that stands for its own.
///
/// @param handles one for each stream of the trace
/// @param ordinals the devices' ordinals, one for each device of the trace
/// @param devices the number of each stream's device
@SuppressWarnings("ArrayRecordComponent") // Nobody compares or prints them; the loops want plain arrays.
record ReplayStreams(CudaDriver driver, long[] handles, int[] ordinals, int[] devices) implements AutoCloseable {
    /// Creates the streams.
    ///
    /// @param firstOrdinal the device that stands for the trace's first device; the others follow
    static ReplayStreams create(CudaDriver driver, Trace trace, int firstOrdinal) {
        int[] devices = trace.origins().devices();
        int[] ordinals = IntStream.range(0, trace.origins().deviceCount())
                .map(device -> firstOrdinal + device)
                .toArray();
        long[] handles = new long[devices.length];
        Arrays.setAll(handles, stream -> driver.streams().create(ordinals[devices[stream]]));
        return new ReplayStreams(driver, handles, ordinals, devices);
    }

    int ordinal(int stream) {
        return ordinals[devices[stream]];
    }

    long[] handlesOn(int device) {
        return IntStream.range(0, handles.length)
                .filter(stream -> devices[stream] == device)
                .mapToLong(stream -> handles[stream])
                .toArray();
    }

    long[] freeBytes() {
        return Arrays.stream(ordinals)
                .mapToLong(ordinal -> driver.memory().freeBytes(ordinal))
                .toArray();
    }

    void synchronize() {
        for (int ordinal : ordinals) {
            driver.devices().synchronize(ordinal);
        }
    }

    @Override
    public void close() {
        for (int stream = 0; stream < handles.length; stream++) {
            driver.streams().destroy(ordinal(stream), handles[stream]);
        }
    }
}
