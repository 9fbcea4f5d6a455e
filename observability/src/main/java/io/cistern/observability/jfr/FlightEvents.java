package io.cistern.observability.jfr;

import io.cistern.DeviceMemory;
import io.cistern.Registration;
import io.cistern.diagnostics.LiveBlock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import jdk.jfr.FlightRecorder;

/// Writes what happens to a [DeviceMemory] into the recordings of Java Flight Recorder, under the category
/// `Cistern`.
///
/// ```
/// try (Registration events = FlightEvents.register(memory)) { … }
/// java -Dcistern.observe=jfr -XX:StartFlightRecording …              // the same without code
/// ```
///
/// | event | when |
/// |---|---|
/// | `cistern.SegmentAcquired`, `.SegmentReleased` | an allocator got memory from the driver, or gave it back |
/// | `cistern.PageMoved` | a page is used at another address |
/// | `cistern.Trim` | idle memory was given back on request |
/// | `cistern.ReclaimStep` | a request found no memory, and a step was tried |
/// | `cistern.OutOfMemory` | a request failed |
/// | `cistern.SlowAllocation` | an allocation took longer than the event's setting `slowerThan`, 1 ms |
/// | `cistern.AllocationSample` | a thread's allocations came to the event's setting `interval`, 64 MiB |
/// | `cistern.Scope` | a thread left a scope; it began where the scope did |
/// | `cistern.CurrentChanged` | another allocator became current |
/// | `cistern.Annotation` | the program [marked][io.cistern.Listeners#annotate] a moment |
/// | `cistern.DeviceStatistics`, `.AllocatorStatistics` | once a second |
/// | `cistern.Leak` | blocks that live when the device memory closes, or on [demand][#recordLeaks], by place |
///
/// Events carry the stack of the program where it tells something. Settings are changed as those of the JDK's
/// events: `jcmd 4711 JFR.start cistern.AllocationSample#interval=1MiB`.
///
/// Without a recording an allocation pays nothing for them, and with one some hundred nanoseconds, written or
/// not. Nothing here throws because of the recorder.
///
/// **Threads.** Any thread may call any method at any time.
public final class FlightEvents {
    /// Frames that name the place of a leak.
    private static final int SITE_FRAMES = 8;

    private FlightEvents() {}

    /// Starts to write the events of a device memory into every recording, present and later ones, until the
    /// registration or the device memory is closed. Where there is no flight recorder, nothing happens.
    /// Registered twice, events are written once.
    ///
    /// @return a registration; closing it stops them
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

    /// Writes an event `cistern.Leak` for each place in the program that made blocks which are alive. Places
    /// are known as far as the [level][io.cistern.diagnostics.LeakLevel] keeps them. Takes time in proportion
    /// to the number of live blocks, and does nothing without a recording.
    public static void recordLeaks(DeviceMemory memory) {
        if (FlightRecorder.isAvailable() && new LeakEvent().isEnabled()) {
            Map<Place, List<LiveBlock>> byPlace = memory.leaks().stream()
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
        LeakEvent event = new LeakEvent();
        event.allocator = place.allocator;
        event.device = place.device;
        event.site = place.site;
        event.blocks = blocks.size();
        event.byteSize = blocks.stream().mapToLong(LiveBlock::byteSize).sum();
        event.oldestAge = blocks.stream()
                .flatMap(block -> block.age().stream())
                .mapToLong(java.time.Duration::toMillis)
                .max()
                .orElse(Long.MIN_VALUE); // the recorder's word for "unknown"
        event.commit();
    }
}
