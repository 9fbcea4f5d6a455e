package io.cistern.examples;

import io.cistern.Allocator;
import io.cistern.Allocators;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.cuda.Streams;

/// Uses [ShortestPlugin] by its name, like any other allocator.
public final class UseShortestPlugin {
    private UseShortestPlugin() {}

    /// Runs the example.
    public static void main(String[] arguments) {
        Allocator plugin = Allocators.setCurrent("shortest");
        try (DeviceBuffer one = DeviceBuffer.allocate(1000, Streams.LEGACY_DEFAULT);
                DeviceBuffer two = DeviceBuffer.allocate(3000, Streams.LEGACY_DEFAULT)) {
            System.out.printf(
                    "%s gave %d blocks of %d bytes in all%n",
                    plugin.name(), plugin.statistics(0).liveBlocks(), one.byteSize() + two.byteSize());
        }
        System.out.printf(
                "%s has %d blocks left%n", plugin.name(), plugin.statistics(0).liveBlocks());
    }
}
