package io.cistern.observability.jfr;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.LiveBlock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import jdk.jfr.FlightRecorder;

/// Writes the events of a [DeviceMemory] into recordings of Java Flight Recorder, under the category `Cistern`.
///
/// ```
/// try (Registration events = FlightEvents.register(memory)) { … }
/// java -Dcistern.observe=jfr -XX:StartFlightRecording …              // the same without code
/// ```
///
/// | event | when |
/// |---|---|
/// | `cistern.SegmentAcquired`, `.SegmentReleased` | an allocator obtained driver memory, or released it |
/// | `cistern.PageMoved` | an allocator uses a page at another address |
/// | `cistern.Trim` | idle memory was released on request |
/// | `cistern.ReclaimStep` | a request found no memory, and a reclaim step was tried |
/// | `cistern.OutOfMemory` | a request failed |
/// | `cistern.SlowAllocation` | an allocation took at least the event's setting `slowerThan` (1 ms) |
/// | `cistern.AllocationSample` | a thread's allocations reached the event's setting `interval` (64 MiB) |
/// | `cistern.Scope` | a thread left a scope; the event covers its whole duration |
/// | `cistern.CurrentChanged` | another allocator became current |
/// | `cistern.Annotation` | the program [marked][io.cistern.Listeners#annotate] a moment |
/// | `cistern.DeviceStatistics`, `.AllocatorStatistics` | once a second |
/// | `cistern.Leak` | blocks are live when the device memory closes, or on [demand][#recordLeaks]: one for each place |
///
/// Events have the program's call stack if it is informative. Change their settings like those of the JDK's
/// events: `jcmd 4711 JFR.start +cistern.AllocationSample#interval=1MiB`.
///
/// Without a recording, events cost an allocation nothing. With a recording, every allocation takes a
/// little longer, even one for which no event is written. Writing events never makes an allocation or a
/// free fail.
///
/// **Threads.** Any thread may call any method at any time.
public final class FlightEvents {
    /// Frames that identify the place of a leak.
    private static final int SITE_FRAMES = 8;

    private FlightEvents() {}

    /// Starts to write the events of a device memory into every recording, present and later ones, until the
    /// registration or the device memory is closed. If the JVM has no flight recorder, nothing happens. If
    /// a device memory is registered twice, its events are still written once.
    ///
    /// @return a registration; closing it stops the writing
    public static Registration register(DeviceMemory memory) {
        if (!FlightRecorder.isAvailable()) {
            return () -> {};
        }
        FlightWriter writer = memory.moduleSupport().attachment(FlightWriter.class, FlightWriter::new);
        writer.use();
        AtomicBoolean open = new AtomicBoolean(true);
        return () -> {
            if (open.getAndSet(false)) {
                writer.release();
            }
        };
    }

    /// Writes an event `cistern.Leak` for each place in the program that allocated blocks that are still
    /// live. The [level][io.cistern.diagnostics.LeakLevel] decides which places are known. The call takes
    /// time in proportion to the number of live blocks. Without a recording, nothing happens.
    public static void recordLeaks(DeviceMemory memory) {
        if (FlightRecorder.isAvailable() && new EventTypes.Leak().isEnabled()) {
            Map<Place, List<LiveBlock>> byPlace = memory.liveBlocks().stream()
                    .collect(Collectors.groupingBy(
                            block -> new Place(block.allocator(), block.device(), siteOf(block.site()))));
            byPlace.forEach(FlightEvents::recordLeak);
        }
    }

    private record Place(String allocator, int device, String site) {}

    private static String siteOf(List<StackTraceElement> frames) {
        return frames.stream()
                .limit(SITE_FRAMES)
                .map(StackTraceElement::toString)
                .collect(Collectors.joining("\n"));
    }

    private static void recordLeak(Place place, List<LiveBlock> blocks) {
        EventTypes.Leak event = new EventTypes.Leak();
        event.allocator = place.allocator;
        event.device = place.device;
        event.site = place.site;
        event.blocks = blocks.size();
        event.byteSize = blocks.stream().mapToLong(LiveBlock::byteSize).sum();
        event.oldestAge = blocks.stream()
                .flatMap(block -> block.age().stream())
                .mapToLong(java.time.Duration::toMillis)
                .max()
                .orElse(Long.MIN_VALUE); // the recorder's value for "unknown"
        event.commit();
    }
}
