package io.cistern.cli.combinations;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// Everything that a program can choose, combined: each two values of [Combination] that go together meet in a
/// [CombinedProgram].
///
/// **Longer**, with other programs, and one program alone:
///
/// ```text
/// mvn test -pl tools/cli -am -Dtest=CombinationsTests -Dsurefire.failIfNoSpecifiedTests=false \
///     -Dcistern.testkit.combinations.seconds=3600 -Dcistern.testkit.combinations.seed=7
/// mvn … -Dcistern.testkit.combinations.row=CACHING/NONE/…@1234
/// ```
final class CombinationsTests {
    private static final System.Logger LOGGER = System.getLogger(CombinationsTests.class.getName());

    private static final long SEED = Long.getLong("cistern.testkit.combinations.seed", 20_261_129L);

    /// How long new arrays are begun; the first one is always run to its end.
    private static final long SECONDS = Long.getLong("cistern.testkit.combinations.seconds", 0);

    private static final String ROW = System.getProperty("cistern.testkit.combinations.row", "");
    private static final long PATIENCE_MILLIS = 120_000;
    private static final int FRAMES = 14;

    private final CombinedCounts counts = new CombinedCounts();
    private final List<String> wrong = new ArrayList<>();

    @Test
    void allPairsThatGoTogetherMeet() {
        List<List<Enum<?>>> rows = CoveringArray.rows(Combination.AXES, Combination::together, SEED);
        Set<Set<Enum<?>>> met = new HashSet<>();
        for (List<Enum<?>> row : rows) {
            row.forEach(one -> row.forEach(other -> met.add(Set.copyOf(List.of(one, other)))));
        }
        List<Enum<?>> all = Combination.AXES.stream()
                .flatMap(axis -> Stream.<Enum<?>>of(axis.getEnumConstants()))
                .collect(Collectors.toList());
        for (Enum<?> one : all) {
            for (Enum<?> other : all) {
                boolean isPair =
                        !one.getDeclaringClass().equals(other.getDeclaringClass()) && Combination.together(one, other);
                if (isPair) {
                    assertThat(met).contains(Set.of(one, other));
                }
            }
        }
    }

    @Test
    void everyCombinationKeepsWhatItPromises() throws InterruptedException {
        if (!ROW.isEmpty()) {
            run(Combination.parse(ROW));
        } else {
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            long seed = SEED;
            do {
                runArray(seed++);
            } while (System.nanoTime() < end);
        }
        LOGGER.log(Level.INFO, counts);
        assertThat(wrong).isEmpty();
    }

    private void runArray(long seed) throws InterruptedException {
        long row = seed * 1000;
        for (List<Enum<?>> values : CoveringArray.rows(Combination.AXES, Combination::together, seed)) {
            run(new Combination(values, row++));
        }
    }

    private void run(Combination combination) throws InterruptedException {
        Throwable[] failure = {null};
        Thread thread = Thread.ofPlatform().daemon().name("combination").start(() -> {
            try {
                new CombinedProgram(combination, counts).run();
            } catch (Throwable thrown) {
                failure[0] = thrown;
            }
        });
        thread.join(PATIENCE_MILLIS);
        if (thread.isAlive()) {
            tell("hangs: " + again(combination) + stacks());
        } else if (failure[0] != null) {
            tell(failure[0] + ": " + again(combination) + stack(failure[0]));
        }
    }

    /// At once, since a long run has hours to go.
    private void tell(String what) {
        LOGGER.log(Level.WARNING, what);
        wrong.add(what);
    }

    private static String again(Combination combination) {
        return "again with -Dcistern.testkit.combinations.row=" + combination.text();
    }

    private static String stacks() {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(each -> each.getKey().getName().startsWith("combin"))
                .map(each -> "\n  " + each.getKey().getName() + frames(each.getValue()))
                .collect(Collectors.joining());
    }

    private static String frames(StackTraceElement[] frames) {
        return Stream.of(frames)
                .limit(FRAMES)
                .map(frame -> "\n      at " + frame)
                .collect(Collectors.joining());
    }

    private static String stack(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return "\n  " + cause + frames(cause.getStackTrace());
    }
}
