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

    /// A plug-in that keeps one segment of the source `linear` per size and gives all of them back when it is closed.
    static String recycling(String className, String name) {
        return """
                package %1$s;
                import io.cistern.spi.*;
                import java.util.*;
                import java.util.concurrent.*;
                public class %2$s implements AllocatorProvider {
                    public int spiVersion() { return SPI_VERSION; }
                    public String name() { return "%3$s"; }
                    public DeviceAllocator open(AllocatorContext context) {
                        return new Recycling((RangeSource) context.segments("linear"));
                    }
                    static class Recycling implements DeviceAllocator {
                        private final RangeSource source;
                        private final Map<Long, Segment> live = new ConcurrentHashMap<>();
                        private final Queue<Segment> idle = new ConcurrentLinkedQueue<>();
                        Recycling(RangeSource source) { this.source = source; }
                        public synchronized long allocate(long byteSize, int device, long stream) {
                            Segment segment = idle.stream()
                                    .filter(s -> s.byteSize() >= byteSize && s.device() == device)
                                    .findFirst()
                                    .orElse(null);
                            if (segment == null) {
                                segment = source.acquire(byteSize, 256, device);
                            } else {
                                idle.remove(segment);
                            }
                            live.put(segment.address(), segment);
                            return segment.address();
                        }
                        public synchronized void free(long address, long byteSize, int device, long stream) {
                            idle.add(live.remove(address));
                        }
                        public synchronized void close() {
                            idle.forEach(source::release);
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
