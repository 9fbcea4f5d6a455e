package io.cistern.cli.trace;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/// The allocator that served a recorded program, as far as the recording says.
///
/// @param name `PyTorch` or `RMM`; empty if the recording does not say
/// @param olderBlocks blocks that were live before the recording began
/// @param reserved the bytes that it held from the driver, by time; empty if the recording does not say
/// @param refused the memory at each refused request, in the order of their rows; the last ones may be missing
public record Recorder(
        String name,
        long olderBlocks,
        List<Reserved> reserved,
        List<Refused> refused,
        List<Mark> marks,
        Map<String, String> settings) {
    public static final Recorder UNKNOWN = named("");

    /// The bytes that an allocator held on a device from a moment on.
    public record Reserved(long nanos, long device, long byteSize) {}

    /// The memory at a refused request. −1 is unknown.
    ///
    /// @param freeBytes the bytes that the device had free
    /// @param reservedBytes the bytes that the allocator held of that device
    public record Refused(long freeBytes, long reservedBytes) {
        public static final Refused UNKNOWN = new Refused(-1, -1);
    }

    /// A note of the program.
    public record Mark(long nanos, String text) {}

    public static Recorder named(String name) {
        return new Recorder(name, 0, List.of(), List.of(), List.of(), Map.of());
    }

    public Recorder withOlderBlocks(long count) {
        return new Recorder(name, count, reserved, refused, marks, settings);
    }

    /// Returns the most bytes held on a device; empty if the recording does not say.
    public OptionalLong reservedPeakBytes(long device) {
        return reserved.stream()
                .filter(each -> each.device == device)
                .mapToLong(Reserved::byteSize)
                .max();
    }

    /// Returns the bytes that the allocator asks the driver for when no cached memory serves a request. PyTorch rounds
    /// them up (`kSmallBuffer`, `kLargeBuffer`, `kMinLargeAlloc`, `kRoundLarge`).
    public long driverBytes(long byteSize) {
        if (!name.equals("PyTorch")) {
            return byteSize;
        }
        if (byteSize <= 1L << 20) {
            return 2L << 20;
        }
        return byteSize < 10L << 20 ? 20L << 20 : Math.ceilDiv(byteSize, 2L << 20) * (2L << 20);
    }
}
