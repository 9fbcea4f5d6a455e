package io.cistern.cli.replay;

import java.util.List;
import java.util.stream.IntStream;

/// Checks the contents of blocks on all devices of a replay, by a [ContentCheck] each.
record ContentChecks(List<ContentCheck> byDevice) implements AutoCloseable {
    static ContentChecks on(ReplayStreams streams) {
        return new ContentChecks(IntStream.range(0, streams.ordinals().length)
                .mapToObj(device ->
                        new ContentCheck(streams.driver(), streams.ordinals()[device], streams.handlesOn(device)))
                .toList());
    }

    /// Returns how many words were found changed so far; waits for the devices.
    long mismatches() {
        return byDevice.stream().mapToLong(ContentCheck::mismatches).sum();
    }

    @Override
    public void close() {
        byDevice.forEach(ContentCheck::close);
    }
}
