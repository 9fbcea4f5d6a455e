package io.cistern.suites.buffers;

import io.cistern.cuda.CudaDriver;
import org.junit.jupiter.api.Nested;

/// Tests the objects that programs hold: buffers, slices, arenas, copies, pinned memory, streams and
/// events, launches. The real driver and the simulated GPU run the same suite. Contents are checked
/// wherever a test writes some.
public abstract class BufferContract {
    /// For subclasses.
    protected BufferContract() {}

    /// Opens the driver for one test; the suite closes it.
    ///
    /// @return a new driver with at least one device
    protected abstract CudaDriver openDriver();

    @Nested
    final class BufferTests extends BufferContractTests {
        BufferTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class ReshapeTests extends ReshapeContractTests {
        ReshapeTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class SliceTests extends SliceContractTests {
        SliceTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class ArenaTests extends ArenaContractTests {
        ArenaTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class HostCopyTests extends HostCopyContractTests {
        HostCopyTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class DirectCopyTests extends DirectCopyContractTests {
        DirectCopyTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class DeviceCopyTests extends DeviceCopyContractTests {
        DeviceCopyTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class PinnedTests extends PinnedContractTests {
        PinnedTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class StreamTests extends StreamObjectContractTests {
        StreamTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class LaunchTests extends LaunchContractTests {
        LaunchTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class CapturedCallTests extends CapturedCallContractTests {
        CapturedCallTests() {
            super(BufferContract.this);
        }
    }
}
