package io.cistern.cli.refusals;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.common.Plugins;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.DeviceOutOfMemoryException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.catalog.Catalog;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A request is refused only if nothing could serve it, and the refusal names the cause that applies: with every
/// allocator, in random programs on small devices, judged by a [RefusalOracle] that looks from outside.
///
/// A program is a [Traffic], drawn from spec and seed. The first false refusal ends it; the failure shows a short
/// program that fails alike.
///
/// **More seeds**, other seeds, some specs (a regular expression):
///
/// ```text
/// mvn test -pl tools/cli -am -Dtest=RefusalOracleTests -Dsurefire.failIfNoSpecifiedTests=false \
///     -Dcistern.testkit.refusals.seeds=1000 -Dcistern.testkit.refusals.first=5000 \
///     '-Dcistern.testkit.refusals.specs=async.*'
/// ```
final class RefusalOracleTests {
    private static final int USUAL_SEEDS = 2;
    private static final int MANY_SEEDS = 100;
    private static final String SEEDS = "cistern.testkit.refusals.seeds";
    private static final long FIRST = Long.getLong("cistern.testkit.refusals.first", 1);
    private static final Pattern SPECS = Pattern.compile(System.getProperty("cistern.testkit.refusals.specs", ".*"));

    /// A fault that depends on the timing of the driver's own threads shows in one of so many runs.
    private static final int TRIES = 3;

    private static final Catalog CATALOG = Plugins.catalog();

    static Stream<String> specs() {
        return TestedSpecs.ALL.stream().filter(SPECS.asMatchPredicate());
    }

    @ParameterizedTest
    @MethodSource("specs")
    void aRequestIsRefusedOnlyIfNothingCouldServeIt(String spec) {
        assertThat(falseRefusals(spec, Integer.getInteger(SEEDS, USUAL_SEEDS))).isEmpty();
    }

    @Tag("long")
    @ParameterizedTest
    @MethodSource("specs")
    void aRequestIsRefusedOnlyIfNothingCouldServeItInManyPrograms(String spec) {
        assertThat(falseRefusals(spec, Integer.getInteger(SEEDS, MANY_SEEDS))).isEmpty();
    }

    /// Returns one short program for each cause.
    private static List<String> falseRefusals(String spec, int seeds) {
        Map<FalseRefusal.Cause, String> byCause = new TreeMap<>();
        Map<FalseRefusal.Cause, Integer> counts = new TreeMap<>();
        for (long seed = FIRST; seed < FIRST + seeds; seed++) {
            Traffic traffic = Traffic.of(spec, seed);
            FalseRefusal found = TrafficRun.of(traffic, CATALOG).orElse(null);
            if (found == null) {
                continue;
            }
            counts.merge(found.cause(), 1, Integer::sum);
            if (!byCause.containsKey(found.cause())) {
                byCause.put(found.cause(), "seed " + seed + ", " + shortest(traffic, found, CATALOG));
            }
        }
        return byCause.entrySet().stream()
                .map(each -> counts.get(each.getKey()) + " programs of " + seeds + ", " + each.getValue())
                .toList();
    }

    private static String shortest(Traffic traffic, FalseRefusal found, Catalog catalog) {
        Traffic least =
                traffic.shrunk(each -> again(each, found.cause(), catalog).isPresent());
        return found.cause() + ": " + least.text() + "\n    "
                + again(least, found.cause(), catalog).orElse(found).detail();
    }

    private static Optional<FalseRefusal> again(Traffic traffic, FalseRefusal.Cause cause, Catalog catalog) {
        return Stream.generate(() -> TrafficRun.of(traffic, catalog))
                .limit(TRIES)
                .flatMap(Optional::stream)
                .filter(each -> each.cause() == cause)
                .findFirst();
    }

    @Test
    void everyAllocatorAndSourceIsTested() {
        List<String> tested = new ArrayList<>(TestedSpecs.LEFT_OUT.keySet());
        TestedSpecs.ALL.forEach(spec -> tested.add(spec.split(":", 2)[0]));
        List<String> named = CATALOG.entries().stream()
                .filter(entry -> entry.problem().isEmpty())
                .map(Catalog.Entry::name)
                .toList();
        assertThat(tested).containsAll(named);
        List<String> overSources = CATALOG.entries().stream()
                .filter(entry -> entry.kind() == Catalog.Kind.SOURCE)
                .map(Catalog.Entry::name)
                .filter(name -> !TestedSpecs.LEFT_OUT.containsKey(name))
                .map(name -> "caching:source=" + name)
                .toList();
        assertThat(TestedSpecs.ALL).containsAll(overSources);
    }

    @Test
    void anAllocatorThatRefusesForNoReasonIsFoundInOneStep() {
        Catalog catalog = Catalog.of(List.of(new MoodyProvider()), List.of());
        Traffic traffic = LongStream.rangeClosed(1, MANY_SEEDS)
                .mapToObj(seed -> Traffic.of("moody", seed))
                .filter(each ->
                        again(each, FalseRefusal.Cause.SERVED_AGAIN, catalog).isPresent())
                .findFirst()
                .orElseThrow();
        Traffic least = traffic.shrunk(
                each -> again(each, FalseRefusal.Cause.SERVED_AGAIN, catalog).isPresent());
        assertThat(least.steps()).hasSize(1);
    }

    private static final class MoodyProvider implements AllocatorProvider {
        @Override
        public String name() {
            return "moody";
        }

        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            return new Moody(context.extension(CudaDriver.class).orElseThrow());
        }
    }

    /// Refuses its first request, also when it is asked again.
    private static final class Moody implements DeviceAllocator {
        private final CudaDriver driver;
        private int asked;

        Moody(CudaDriver driver) {
            this.driver = driver;
        }

        @Override
        public long allocate(long byteSize, int device, long stream) {
            if (asked++ < 2) {
                throw new DeviceOutOfMemoryException(byteSize, device, "");
            }
            return driver.memory().allocate(device, byteSize);
        }

        @Override
        public void free(long address, long byteSize, int device, long stream) {
            driver.memory().free(device, address);
        }
    }
}
