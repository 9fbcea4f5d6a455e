package io.cistern.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/// Calls that give something back for good.
final class DeadContextTests {
    private int calls;

    private Runnable refused(int times, CudaResult result) {
        return () -> {
            if (calls++ < times) {
                throw new CudaException(DriverCall.STREAM_DESTROY, result.code(), "call " + calls);
            }
        };
    }

    @Test
    void aRefusedCallIsMadeAgainUntilItSucceeds() {
        DeadContext.insist(refused(2, CudaResult.UNKNOWN));
        assertThat(calls).isEqualTo(3);
    }

    @Test
    void aCallThatIsAlwaysRefusedThrowsTheLastRefusal() {
        assertThatThrownBy(() -> DeadContext.insist(refused(Integer.MAX_VALUE, CudaResult.UNKNOWN)))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("call 4");
        assertThat(calls).isEqualTo(4);
    }

    @Test
    void aDeadContextIsAskedOnce() {
        DeadContext.insist(refused(Integer.MAX_VALUE, CudaResult.ILLEGAL_ADDRESS));
        assertThat(calls).isOne();
    }
}
