package io.cistern.pressure;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.spi.StreamOrder;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// Fences that pass when the test says so; waits are written down. Fence 0 has passed.
final class WrittenOrder implements StreamOrder {
    final List<String> asked = new ArrayList<>();
    final Set<Long> open = new HashSet<>();
    final Set<Long> passed = new HashSet<>(Set.of(0L));
    boolean failsToWait;
    boolean failsToQuery;
    private long last;

    @Override
    public long record(int device, long stream) {
        open.add(++last);
        return last;
    }

    @Override
    public long recordAll(int device) {
        return record(device, -1);
    }

    @Override
    public boolean passed(int device, long fence) {
        return fence == 0 || (!failsToQuery && passed.contains(fence));
    }

    @Override
    public void await(int device, long stream, long fence) {
        asked.add(stream + " waits for " + fence);
    }

    @Override
    public void synchronize(int device, long fence) {
        asked.add("the host waits for " + fence);
        if (failsToWait) {
            throw new CudaException(DriverCall.EVENT_SYNCHRONIZE, CudaResult.UNKNOWN.code(), "");
        }
        passed.add(fence);
    }

    @Override
    public void release(int device, long fence) {
        assertThat(fence == 0 || open.remove(fence)).as("open").isTrue();
    }
}
