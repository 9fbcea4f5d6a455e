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
    final class BufferTests extends BufferPart {
        BufferTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class ReshapeTests extends ReshapePart {
        ReshapeTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class SliceTests extends SlicePart {
        SliceTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class ArenaTests extends ArenaPart {
        ArenaTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class HostCopyTests extends HostCopyPart {
        HostCopyTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class DirectCopyTests extends DirectCopyPart {
        DirectCopyTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class DeviceCopyTests extends DeviceCopyPart {
        DeviceCopyTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class PinnedTests extends PinnedPart {
        PinnedTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class StreamTests extends StreamObjectPart {
        StreamTests() {
            super(BufferContract.this);
        }
    }

    @Nested
    final class LaunchTests extends LaunchPart {
        LaunchTests() {
            super(BufferContract.this);
        }
    }
}
