package io.cistern.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.cli.trace.Trace;
import io.cistern.cli.trace.TraceReader;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// What a row of one thread has to come after; rows are counted from 0.
final class RowDependenciesTests {
    @Test
    void aFreeComesAfterItsAllocation() throws Exception {
        assertThat(needed("a,1,8,0,0,7,0", "a,2,8,0,0,8,0", "f,1,8,0,0,8,0"))
                .containsExactly(List.of(), List.of(), List.of(0));
    }

    @Test
    void aFreeComesAfterTheUses() throws Exception {
        List<List<Integer>> needed =
                needed("a,1,8,0,0,1,0", "w,0,0,5,0,2,0", "u,1,0,5,0,2,0", "w,5,0,0,0,3,0", "f,1,8,0,0,1,0");
        assertThat(needed).containsExactly(List.of(), List.of(0), List.of(0), List.of(1, 2), List.of(3, 2));
    }

    @Test
    void anotherBlockOfTheSameIdWaitsForNothing() throws Exception {
        assertThat(needed("a,1,8,0,0,1,0", "f,1,8,0,0,1,0", "a,1,8,0,0,2,0"))
                .containsExactly(List.of(), List.of(), List.of());
    }

    @Test
    void anEndComesAfterEveryThreadOfItsStream() throws Exception {
        assertThat(needed("a,1,8,0,0,1,0", "a,2,8,0,0,2,0", "e,0,0,0,0,3,0", "a,3,8,0,0,1,0"))
                .containsExactly(List.of(), List.of(), List.of(0, 1), List.of(2));
    }

    @Test
    void aTrimComesBetweenAllRowsOfItsDevice() throws Exception {
        assertThat(needed(
                        "a,1,8,0,0,1,0",
                        "a,2,8,5,0,2,0",
                        "a,3,8,0,1,4,0",
                        "f,1,8,0,0,1,0",
                        "t,0,0,0,0,3,0",
                        "t,0,0,0,0,4,0",
                        "a,4,8,6,0,1,0",
                        "a,5,8,6,0,1,0",
                        "f,3,8,0,1,3,0"))
                .containsExactly(
                        List.of(),
                        List.of(),
                        List.of(),
                        List.of(),
                        List.of(3, 1),
                        List.of(4),
                        List.of(5),
                        List.of(),
                        List.of(2));
    }

    private static List<List<Integer>> needed(String... rows) throws Exception {
        String text = "op,id,bytes,stream,device,thread,nanos\n" + String.join("\n", rows);
        Trace trace = TraceReader.read("t.csv", new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII)))
                .withOwnSlots();
        RowDependencies dependencies = RowDependencies.of(trace);
        return IntStream.range(0, rows.length)
                .mapToObj(row -> IntStream.range(dependencies.begin(row), dependencies.end(row))
                        .mapToObj(dependencies::at)
                        .toList())
                .toList();
    }
}
