package io.cistern.cli.combinations;

import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Captures in random [programs][GraphProgram], of which each seed is one.
///
/// **Longer**: `-Dcistern.testkit.graphs.programs=100000 -Dcistern.testkit.graphs.seed=7`
final class GraphProgramTests {
    private static final long SEED = Long.getLong("cistern.testkit.graphs.seed", 1);
    private static final int PROGRAMS = Integer.getInteger("cistern.testkit.graphs.programs", 25);
    private static final int STEPS = 200;

    private static final List<String> SPECS = List.of(
            "caching",
            "async",
            "direct",
            "vmm",
            "caching:source=linear",
            "caching:reuse=wait",
            "caching:check=checked",
            "caching:expandable_segments=false",
            "async:per_stream=true",
            "retry:upstream=async",
            "arbiter:upstream=caching");

    @ParameterizedTest
    @EnumSource(GraphProgram.Trouble.class)
    @Timeout(3600)
    void noBlockIsLostAndNoByteStaysCharged(GraphProgram.Trouble trouble) {
        for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            List<String> specs =
                    List.of(SPECS.get(random.nextInt(SPECS.size())), SPECS.get(random.nextInt(SPECS.size())));
            try {
                new GraphProgram(seed, trouble, specs).run(STEPS);
            } catch (Throwable failure) {
                throw new AssertionError("program of seed " + seed + " with " + specs, failure);
            }
        }
    }
}
