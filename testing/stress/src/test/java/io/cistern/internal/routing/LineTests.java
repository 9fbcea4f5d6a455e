package io.cistern.internal.routing;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.cistern.internal.threads.BiasedLock;
import io.cistern.internal.threads.ThreadState;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What one thread writes in each pair shares no cache line with what others read or write, wherever the
/// collector puts the objects: asked of the JVM, which arranges fields as it likes.
class LineTests {
    private static final long LINE = 64;

    @ParameterizedTest
    @ValueSource(classes = {Tally.class, Lease.class, ThreadCounters.class, ThreadState.class, BiasedLock.class})
    void aLineOfNothingStandsInFrontOfWhatAThreadWrites(Class<?> written) {
        for (Field field : fields(written)) {
            assertTrue(offset(field) >= LINE, field + " at " + offset(field));
        }
    }

    @Test
    void aLineOfNothingStandsBehindTheCountersOfATally() {
        assertApart(
                Tally.class,
                List.of(
                        "attempts",
                        "failures",
                        "allocations",
                        "frees",
                        "totalBytes",
                        "requested",
                        "most",
                        "ceiling",
                        "floor"));
    }

    @Test
    void aLineOfNothingStandsBehindTheCreditOfALease() {
        assertApart(Lease.class, List.of("credit", "maxCredit", "owed"));
    }

    /// The bytes behind the fields until the next one that is no padding, or the end, are a line at least.
    private static void assertApart(Class<?> type, List<String> written) {
        long end = fields(type).stream()
                        .filter(field -> written.contains(field.getName()))
                        .mapToLong(LineTests::offset)
                        .max()
                        .orElseThrow()
                + Long.BYTES;
        long padding = fields(type).stream()
                .filter(field -> field.getName().matches("p\\d"))
                .filter(field -> offset(field) >= end && offset(field) < end + LINE)
                .count();
        assertTrue(padding * Long.BYTES == LINE, padding + " longs of padding behind " + end);
    }

    private static List<Field> fields(Class<?> type) {
        return Stream.of(type.getDeclaredFields())
                .filter(field -> !Modifier.isStatic(field.getModifiers()))
                .toList();
    }

    /// Through reflection, so that the compiler does not warn of an internal class.
    private static long offset(Field field) {
        try {
            Class<?> type = Class.forName("sun.misc.Unsafe");
            Field instance = type.getDeclaredField("theUnsafe");
            instance.setAccessible(true);
            return (long) type.getMethod("objectFieldOffset", Field.class).invoke(instance.get(null), field);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }
}
