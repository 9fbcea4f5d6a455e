package io.cistern.cli.trace;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/// The allocator that served a recorded program, as far as the recording says.
///
/// @param name `PyTorch` or `RMM`; empty if the recording does not say
/// @param olderBlocks blocks that were live before the recording began
/// @param reserved the bytes that it held from the driver, by time; empty if the recording does not say
/// @param marks notes of the program
/// @param settings the allocator's settings
public record Recorder(
        String name, long olderBlocks, List<Reserved> reserved, List<Mark> marks, Map<String, String> settings) {
    /// The bytes that an allocator held on a device from a moment on.
    ///
    /// @param device the device's ordinal
    public record Reserved(long nanos, long device, long byteSize) {}

    /// A note of the program.
    public record Mark(long nanos, String text) {}

    /// Returns the same with another count of older blocks.
    public Recorder withOlderBlocks(long count) {
        return new Recorder(name, count, reserved, marks, settings);
    }

    /// Returns the most bytes held on a device; empty if the recording does not say.
    public OptionalLong reservedPeakBytes(long device) {
        return reserved.stream()
                .filter(each -> each.device == device)
                .mapToLong(Reserved::byteSize)
                .max();
    }

    /// Returns the bytes held on a device at a moment; empty if the recording does not say.
    public OptionalLong reservedBytes(long device, long nanos) {
        return reserved.stream()
                .filter(each -> each.device == device && each.nanos <= nanos)
                .reduce((_, later) -> later)
                .map(last -> OptionalLong.of(last.byteSize))
                .orElse(OptionalLong.empty());
    }
}
