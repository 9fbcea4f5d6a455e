package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.StreamNames;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// A live block. It is a leak if no code will free it. A component is empty if the [LeakLevel] does not
/// record it.
///
/// @param address the address of the block
/// @param byteSize the requested bytes
/// @param device the device of the block
/// @param allocator the spec of the allocator, or the name of the pool, that allocated the block
/// @param stream the stream that the block was allocated for
/// @param age the time since the allocation
/// @param site the stack frames that allocated the block, the innermost first, without those of the
///     framework
/// @param thread the name of the thread that allocated the block
/// @param unreachable whether the block belongs to a `DeviceBuffer` that was dropped without being closed,
///     so that no code can close the buffer any more
public record LiveBlock(
        long address,
        long byteSize,
        int device,
        String allocator,
        OptionalLong stream,
        Optional<Duration> age,
        List<StackTraceElement> site,
        Optional<String> thread,
        boolean unreachable) {
    /// Returns the known components on one line, with only the innermost frame of the site.
    @Override
    public String toString() {
        return ByteSizes.count(byteSize) + " at 0x" + Long.toHexString(address) + " on device " + device
                + (stream.isPresent() ? ", " + StreamNames.of(stream.getAsLong()) : "") + ", of " + allocator
                + thread.map(name -> ", by thread " + name).orElse("")
                + (site.isEmpty() ? "" : " at " + site.getFirst())
                + (unreachable ? ", dropped without close" : "");
    }
}
