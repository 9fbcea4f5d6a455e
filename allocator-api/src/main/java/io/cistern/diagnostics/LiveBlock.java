package io.cistern.diagnostics;

import io.cistern.cuda.settings.ByteSizes;
import io.cistern.internal.names.StreamNames;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// A block that is alive. It is a leak if no code will free it. Components are empty if the [LeakLevel] does
/// not record them.
///
/// @param address where it begins
/// @param byteSize bytes asked for
/// @param device the device it lives on
/// @param allocator the spec of the allocator, or the name of the pool, that allocated it
/// @param stream the stream it was allocated for
/// @param age how long ago it was allocated
/// @param site the stack frames that allocated it, the innermost first, without those of the framework
/// @param thread the name of the thread that allocated it
/// @param unreachable whether it belongs to a `DeviceBuffer` that was dropped without being closed, so that no
///     code can close it any more
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
    /// Returns the size, place and origin of the block as far as they are known, on one line.
    @Override
    public String toString() {
        return ByteSizes.count(byteSize) + " at 0x" + Long.toHexString(address) + " on device " + device
                + (stream.isPresent() ? ", " + StreamNames.of(stream.getAsLong()) : "") + ", of " + allocator
                + thread.map(name -> ", by thread " + name).orElse("")
                + (site.isEmpty() ? "" : " at " + site.getFirst())
                + (unreachable ? ", dropped without close" : "");
    }
}
