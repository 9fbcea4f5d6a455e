package io.cistern.loader;

/// Source texts of third parties' plug-ins.
final class Sources {
    private Sources() {}

    /// A provider whose methods answer with the given expressions.
    static String provider(String className, String name, String spiVersion, String more) {
        return """
                package %s;
                import io.cistern.spi.*;
                public class %s implements AllocatorProvider {
                    public int spiVersion() { return %s; }
                    public String name() { return %s; }
                    %s
                    public DeviceAllocator open(AllocatorContext context) { return null; }
                }
                """.formatted(packageOf(className), simpleName(className), spiVersion, name, more);
    }

    /// A sound provider that opens nothing.
    static String provider(String className, String name) {
        return provider(className, '"' + name + '"', "SPI_VERSION", "");
    }

    /// A sound provider of a segment source that opens nothing.
    static String source(String className, String name) {
        return """
                package %s;
                import io.cistern.spi.*;
                public class %s implements SegmentSourceProvider {
                    public int spiVersion() { return AllocatorProvider.SPI_VERSION; }
                    public String name() { return "%s"; }
                    public SegmentSource open(AllocatorContext context) { return null; }
                }
                """.formatted(packageOf(className), simpleName(className), name);
    }

    /// A plug-in that takes segments of the source `linear`, keeps the freed ones for the next request of that
    /// size on that stream, and gives all of them back when it is closed.
    static String recycling(String className, String name) {
        return """
                package %1$s;
                import io.cistern.spi.*;
                import java.util.*;
                public class %2$s implements AllocatorProvider {
                    public int spiVersion() { return SPI_VERSION; }
                    public String name() { return "%3$s"; }
                    public DeviceAllocator open(AllocatorContext context) {
                        return new Shelves(context.ranges("linear"));
                    }
                    record Shelf(long byteSize, int device, long stream) {}
                    static class Shelves implements DeviceAllocator {
                        private final RangeSource source;
                        private final Map<Shelf, Deque<Segment>> idle = new HashMap<>();
                        Shelves(RangeSource source) { this.source = source; }
                        private Deque<Segment> shelf(long byteSize, int device, long stream) {
                            return idle.computeIfAbsent(new Shelf(byteSize, device, stream), s -> new ArrayDeque<>());
                        }
                        public synchronized long allocate(long byteSize, int device, long stream) {
                            Segment kept = shelf(byteSize, device, stream).poll();
                            return (kept != null ? kept : source.acquire(byteSize, 256, device)).address();
                        }
                        public synchronized void free(long address, long byteSize, int device, long stream) {
                            shelf(byteSize, device, stream).add(new Segment(address, byteSize, device));
                        }
                        public synchronized void close() {
                            idle.values().forEach(segments -> segments.forEach(source::release));
                        }
                    }
                }
                """.formatted(packageOf(className), simpleName(className), name);
    }

    private static String packageOf(String className) {
        return className.substring(0, className.lastIndexOf('.'));
    }

    private static String simpleName(String className) {
        return className.substring(className.lastIndexOf('.') + 1);
    }
}
