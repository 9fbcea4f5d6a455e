package io.cistern.cli.fit;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.jr.ob.JSON;
import io.cistern.cli.ProgramRun;
import io.cistern.cli.fit.DrawnSnapshot.Shape;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import net.razorvine.pickle.Pickler;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/// Snapshots of each format that PyTorch 2.0 to 2.11 wrote are read with all that they hold, as a plain count over the
/// pickled dictionary has it.
class EveryVersionTests {
    private static final List<Integer> MINORS = List.of(0, 1, 2, 6, 7, 9, 11);

    @TempDir
    private Path folder;

    /// What happened on one device.
    ///
    /// @param peak the most bytes that were live, a request that was refused included
    /// @param older blocks that no event allocated
    private record Count(long peak, long servedPeak, long reservedPeak, long older) {}

    static Stream<Arguments> snapshots() {
        return MINORS.stream().flatMap(minor -> Stream.of(Shape.values()).map(shape -> Arguments.of(minor, shape)));
    }

    @ParameterizedTest
    @MethodSource("snapshots")
    void itsFiguresAreThoseOfAPlainCount(int minor, Shape shape) throws Exception {
        Map<String, Object> snapshot = DrawnSnapshot.of(minor, shape);
        Path file = Files.write(folder.resolve("x"), new Pickler().dumps(snapshot));

        ProgramRun run =
                ProgramRun.inProcess("fit", file.toString(), "--allocator=direct", "--capacity=1GiB", "--format=json");

        assertThat(run.exitCode()).as(run.err()).isZero();
        List<Object> answers = JSON.std.listFrom(run.out());
        assertThat(answers).hasSize(list(snapshot, "device_traces").size());
        for (int device = 0; device < answers.size(); device++) {
            Map<?, ?> answer = (Map<?, ?>) answers.get(device);
            Count count = count(snapshot, device);
            assertThat(answer.get("devices")).isEqualTo(List.of(device));
            assertThat(number(answer, "requestedPeakBytes")).isEqualTo(count.peak);
            assertThat(number(answer, "servedPeakBytes")).isEqualTo(count.servedPeak);
            assertThat(number(answer, "recordedReservedPeakBytes")).isEqualTo(count.reservedPeak);
            assertThat(number(answer, "olderBlocks")).isEqualTo(count.older);
            assertThat(answer.get("peakHolders").toString()).contains("train.py:1");
        }
    }

    private static Count count(Map<String, Object> snapshot, int device) {
        Map<Long, Long> live = before(snapshot, device);
        long older = live.size();
        long bytes = live.values().stream().mapToLong(Long::longValue).sum();
        long peak = bytes;
        long servedPeak = bytes;
        long reserved = reservedFirst(snapshot, device);
        long reservedPeak = reserved;
        for (Object entry : trace(snapshot, device)) {
            Map<?, ?> event = (Map<?, ?>) entry;
            switch ((String) event.get("action")) {
                case "alloc" -> {
                    live.put(number(event, "addr"), number(event, "size"));
                    bytes += number(event, "size");
                    servedPeak = Math.max(servedPeak, bytes);
                    peak = Math.max(peak, bytes);
                }
                case "free_completed" -> bytes -= live.remove(number(event, "addr"));
                case "oom" -> peak = Math.max(peak, bytes + number(event, "size"));
                default -> {
                    reserved += growth(event);
                    reservedPeak = Math.max(reservedPeak, reserved);
                }
            }
        }
        return new Count(peak, servedPeak, reservedPeak, older);
    }

    /// Returns the blocks that were live before the first event: those that are freed, or live at the end, and that no
    /// event allocated.
    private static Map<Long, Long> before(Map<String, Object> snapshot, int device) {
        Map<Long, Long> before = new HashMap<>();
        Set<Object> seen = new HashSet<>();
        for (Object entry : trace(snapshot, device)) {
            Map<?, ?> event = (Map<?, ?>) entry;
            boolean isFreed = event.get("action").equals("free_completed");
            if ((isFreed || event.get("action").equals("alloc")) && seen.add(event.get("addr")) && isFreed) {
                before.put(number(event, "addr"), number(event, "size"));
            }
        }
        for (Map<?, ?> segment : segments(snapshot, device)) {
            long address = number(segment, "address");
            for (Object entry : (List<?>) segment.get("blocks")) {
                Map<?, ?> block = (Map<?, ?>) entry;
                if (block.get("state").equals("active_allocated") && seen.add(address)) {
                    before.put(
                            address,
                            block.containsKey("requested_size")
                                    ? number(block, "requested_size")
                                    : number((Map<?, ?>) ((List<?>) block.get("history")).getFirst(), "real_size"));
                }
                address += number(block, "size");
            }
        }
        return before;
    }

    private static long reservedFirst(Map<String, Object> snapshot, int device) {
        long reserved = 0;
        for (Map<?, ?> segment : segments(snapshot, device)) {
            reserved += number(segment, "total_size");
        }
        for (Object event : trace(snapshot, device)) {
            reserved -= growth((Map<?, ?>) event);
        }
        return reserved;
    }

    private static long growth(Map<?, ?> event) {
        return switch ((String) event.get("action")) {
            case "segment_alloc", "segment_map" -> number(event, "size");
            case "segment_free", "segment_unmap" -> -number(event, "size");
            default -> 0;
        };
    }

    private static List<?> trace(Map<String, Object> snapshot, int device) {
        return (List<?>) list(snapshot, "device_traces").get(device);
    }

    private static List<? extends Map<?, ?>> segments(Map<String, Object> snapshot, int device) {
        return list(snapshot, "segments").stream()
                .map(segment -> (Map<?, ?>) segment)
                .filter(segment -> number(segment, "device") == device)
                .toList();
    }

    private static List<?> list(Map<String, Object> fields, String name) {
        return (List<?>) fields.get(name);
    }

    private static long number(Map<?, ?> fields, String name) {
        return ((Number) fields.get(name)).longValue();
    }

    /// PyTorch 1.11 wrote a list of segments, without streams.
    @Test
    void segmentsAloneAreShown() throws Exception {
        List<Object> segments = list(DrawnSnapshot.of(0, Shape.PLAIN), "segments").stream()
                .map(segment -> {
                    Map<Object, Object> old = new HashMap<>((Map<?, ?>) segment);
                    old.remove("stream");
                    return (Object) old;
                })
                .toList();
        Path file = Files.write(folder.resolve("x"), new Pickler().dumps(segments));
        Path page = folder.resolve("page.html");

        ProgramRun fit = ProgramRun.inProcess("fit", file.toString());
        ProgramRun report = ProgramRun.inProcess("report", file.toString(), "-o", page.toString());

        assertThat(fit.exitCode()).isEqualTo(2);
        assertThat(fit.err()).contains("has no history: call torch.cuda.memory._record_memory_history() before");
        assertThat(report.exitCode()).as(report.err()).isZero();
        assertThat(page).content().contains("train.py:1");
    }
}
