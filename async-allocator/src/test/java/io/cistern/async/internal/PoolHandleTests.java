package io.cistern.async.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.PoolAttribute;
import io.cistern.simulated.SimulatedGpu;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class PoolHandleTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(2).build();
    private final PoolHandle pool =
            new PoolHandle(gpu.pools(), 0, gpu.pools().create(MemoryPoolProperties.onDevice(0)));

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void itsCallsAreThoseOfThePool() {
        pool.setAttribute(PoolAttribute.RELEASE_THRESHOLD, 7);
        assertThat(pool.attribute(PoolAttribute.RELEASE_THRESHOLD)).isEqualTo(7);
        assertThat(pool.setAccess(1, AccessRights.READ_WRITE)).isTrue();
        assertThat(pool.access(1)).contains(AccessRights.READ_WRITE);
        pool.destroy();
    }

    @Test
    void afterTheEndNoCallReachesThePool() {
        pool.destroy();
        pool.setAttribute(PoolAttribute.RELEASE_THRESHOLD, 7);
        pool.trimTo(0);
        assertThat(pool.attribute(PoolAttribute.RELEASE_THRESHOLD)).isZero();
        assertThat(pool.setAccess(1, AccessRights.READ_WRITE)).isFalse();
        assertThat(pool.access(1)).isEmpty();
    }

    @Test
    void aRefusedDestructionMayBeTriedAgain() {
        gpu.faults().failOn(DriverCall.MEM_POOL_DESTROY, 0, 5, CudaResult.UNKNOWN);
        assertThatThrownBy(pool::destroy).isInstanceOf(CudaException.class);
        assertThat(gpu.calls().of(DriverCall.MEM_POOL_DESTROY))
                .as("it tries again itself")
                .isEqualTo(4);
        pool.destroy();
        assertThat(gpu.calls().of(DriverCall.MEM_POOL_DESTROY)).isEqualTo(6);
    }
}
