package io.cistern.observability;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cistern.diagnostics.MemoryEvent;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/// What is kept of the events of a device memory.
final class MemoryHistoryTests extends ObservedMemory {
    @Test
    void itIsSwitchedOnAndOffWhileTheProgramRuns() {
        free(allocate(MIB));
        assertThat(history.isOn()).isFalse();
        assertThat(history.entries()).isEmpty();
        history.start(HistoryOptions.withoutStacks());
        long address = allocate(MIB);
        history.stop();
        free(address);
        assertThat(history.entries())
                .extracting(HistoryEntry::event)
                .singleElement()
                .isInstanceOfSatisfying(
                        MemoryEvent.Allocated.class,
                        event -> assertThat(event.address()).isEqualTo(address));
        history.start(HistoryOptions.withStacks());
        assertThat(history.entries()).as("begins anew").isEmpty();
        assertThat(history.options()).contains(HistoryOptions.withStacks());
    }

    @Test
    void entriesTellThreadAndPlaceInTheProgram() throws InterruptedException {
        history.start(HistoryOptions.withStacks());
        Thread.ofPlatform().name("worker").start(() -> free(allocate(MIB))).join();
        assertThat(history.entries()).isNotEmpty().allSatisfy(entry -> {
            assertThat(entry.thread()).isEqualTo("worker");
            assertThat(entry.site().getFirst().getClassName()).startsWith(ObservedMemory.class.getName());
        });
    }

    @Test
    void theOldestEntriesGoWhenTheRingIsFull() {
        history.start(new HistoryOptions(6, false));
        for (int i = 0; i < 10; i++) {
            memory.listeners().annotate("step " + i);
            free(allocate(512));
        }
        List<HistoryEntry> entries = history.entries();
        assertThat(entries).hasSize(16).isSortedAccordingTo((a, b) -> Long.compare(a.nanos(), b.nanos()));
        assertThat(entries.stream().filter(entry -> entry.event() instanceof MemoryEvent.Annotated))
                .as("a ring of their own")
                .hasSize(8);
        assertThat(history.lost()).isEqualTo(2 + 21 - 8);
    }

    @Test
    void sixteenThreadsLoseNothing() throws InterruptedException {
        history.start(new HistoryOptions(1 << 15, false));
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
            threads.add(Thread.ofPlatform().start(() -> {
                for (int round = 0; round < 500; round++) {
                    free(allocate(512));
                }
            }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(history.lost()).isZero();
        assertThat(history.entries().stream().filter(entry -> entry.event() instanceof MemoryEvent.Freed))
                .hasSize(8000);
    }

    @Test
    void kindsCanBeLeftOutAndStacksKeptForAllocations() {
        history.start(HistoryOptions.withStacks()
                .onlyStacksOfAllocations()
                .without(Set.of(MemoryEvent.SegmentAcquired.class, MemoryEvent.Annotated.class)));
        memory.listeners().annotate("left out");
        free(allocate(MIB));
        assertThat(history.entries())
                .extracting(entry -> entry.event().getClass().getSimpleName())
                .contains("Allocated", "Freed")
                .doesNotContain("SegmentAcquired", "Annotated");
        assertThat(history.entries())
                .allSatisfy(entry -> assertThat(entry.site().isEmpty())
                        .isEqualTo(!(entry.event() instanceof MemoryEvent.Allocated)));
    }

    @Test
    void eventsBearTheTextOfTheirThread() throws InterruptedException {
        history.start(HistoryOptions.withoutStacks());
        history.text("request 7");
        long block = allocate(MIB);
        Thread.ofPlatform().start(() -> free(block)).join();
        history.text("");
        free(allocate(MIB));
        assertThat(history.entries().stream()
                        .filter(entry -> entry.event() instanceof MemoryEvent.Allocated
                                || entry.event() instanceof MemoryEvent.Freed)
                        .map(HistoryEntry::text))
                .containsExactly("request 7", "", "", "");
    }

    @Test
    void mistakesAreRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> new HistoryOptions(0, false));
        assertThatIllegalStateException().isThrownBy(history::startedAt);
    }
}
