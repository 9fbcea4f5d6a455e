package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.errors.AllocatorContractException;
import io.cistern.errors.UnknownAddressException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.Availability;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What the user gets from plug-ins that do what they must not. The others go on as if these were not there.
class HostilePluginTests {
    private static final long MIB = 1 << 20;
    private static final String HANG =
            "{ try { Thread.sleep(java.time.Duration.ofDays(1)); } catch (InterruptedException e) { } }";

    @TempDir
    private Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(1).capacityBytes(64 * MIB).build();
    private PluginFolder plugins;

    @BeforeEach
    void makeFolder() throws IOException {
        plugins = new PluginFolder(folder).impatient();
    }

    @AfterEach
    void othersWorkOn() {
        try (DeviceMemory memory = open()) {
            memory.setCurrent("caching");
            memory.free(memory.allocate(MIB, 0, 0), 0);
        }
        assertThat(gpu.memory().freeBytes(0)).isEqualTo(64 * MIB);
        gpu.close();
    }

    private DeviceMemory open() {
        return DeviceMemory.builder(gpu).catalog(plugins.discover()).open();
    }

    /// The wait for a slow one has a bound.
    @Test
    void aPendingInterruptKeepsNobodyFromBeingAsked() throws IOException {
        String slow = "static { java.util.concurrent.locks.LockSupport.parkNanos(50_000_000); }";
        PluginFolder patient = new PluginFolder(folder);
        patient.drop("slow.jar", "acme.Slow", Sources.provider("acme.Slow", "\"slow\"", "SPI_VERSION", slow));
        Thread.currentThread().interrupt();
        assertThat(PluginFolder.problems(patient.discover())).doesNotContainKey("acme.Slow");
        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void onesThatHangWhenTheyAreMadeAreLeftAlone() {
        plugins.drop(
                "slow.jar", "acme.Slow", Sources.provider("acme.Slow", "\"slow\"", "SPI_VERSION", "static " + HANG));
        plugins.drop(
                "mute.jar",
                "acme.Mute",
                Sources.provider("acme.Mute", "named()", "SPI_VERSION", "String named() " + HANG)
                        .replace("} }\n    public Dev", "} return \"mute\"; }\n    public Dev"));

        assertThat(PluginFolder.problems(plugins.discover()))
                .containsEntry("acme.Slow", "does not answer questions about itself within 0.2 s")
                .containsEntry("acme.Mute", "does not answer questions about itself within 0.2 s");
    }

    @Test
    void oneThatHangsInAvailabilityCannotRunAndSaysWhy() {
        CountDownLatch never = new CountDownLatch(1);
        DiscoveredProvider<String> found = DiscoveredProvider.broken(
                io.cistern.spi.catalog.Catalog.Kind.ALLOCATOR,
                "acme.Slow",
                "/slow.jar",
                java.util.Optional.of("slow"),
                0,
                "");
        Availability answer = found.availability(
                () -> {
                    try {
                        never.await();
                        return Availability.yes();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                },
                new ProbeTimeout(Duration.ofMillis(20)));

        assertThat(answer)
                .isEqualTo(Availability.no("acme.Slow of /slow.jar does not answer availability() within 0.02 s"));
    }

    @Test
    void oneThatThrowsInEveryMethodLosesNothingOfOthers() {
        drop("throwing", """
                public long allocate(long byteSize, int device, long stream) { throw new IllegalStateException("no"); }
                public void free(long address, long byteSize, int device, long stream) { throw new Error("no"); }
                public long trim(int device, long keepBytes) { throw new Error("no"); }
                public void streamClosing(int device, long stream) { throw new IllegalStateException("no"); }
                public void close() { throw new IllegalStateException("no"); }
                """);
        DeviceMemory memory = open();
        Allocator plugin = memory.open("throwing");

        assertThatThrownBy(() -> plugin.allocate(MIB, 0, 0)).hasMessage("no");
        assertThat(plugin.statistics(0).allocations()).isZero();
        assertThat(plugin.statistics(0).requestedBytes()).isZero();
        assertThatThrownBy(plugin::close).hasMessage("no");
        assertThat(plugin.isDrained()).isTrue();
        memory.setCurrent("caching");
        memory.free(memory.allocate(MIB, 0, 0), 0);
        assertThatCode(memory::close).doesNotThrowAnyException();
    }

    @Test
    void anAddressThatIsAliveIsRefusedAndItsOwnerKeepsIt() {
        drop("twice", """
                long last;
                public long allocate(long byteSize, int device, long stream) {
                    return last != 0 ? last : (last = source.acquire(byteSize, 256, device).address());
                }
                public void free(long address, long byteSize, int device, long stream) {
                    source.release(new Segment(address, byteSize, device));
                }
                """);
        try (DeviceMemory memory = open()) {
            Allocator plugin = memory.open("twice");
            long first = plugin.allocate(MIB, 0, 0);

            assertThatThrownBy(() -> plugin.allocate(MIB, 0, 0))
                    .isInstanceOf(AllocatorContractException.class)
                    .hasMessageContaining("where a live block already begins");

            memory.free(first, 0);
            assertThatThrownBy(() -> memory.free(first, 0)).isInstanceOf(UnknownAddressException.class);
        }
    }

    @Test
    void oneThatFreesLateHoldsItsMemoryUntilItIsClosed() {
        drop("late", """
                final java.util.Deque<Segment> owed = new java.util.concurrent.ConcurrentLinkedDeque<>();
                public long allocate(long byteSize, int device, long stream) {
                    return source.acquire(byteSize, 256, device).address();
                }
                public void free(long address, long byteSize, int device, long stream) {
                    owed.add(new Segment(address, byteSize, device));
                }
                public void close() { owed.forEach(source::release); }
                """);
        try (DeviceMemory memory = open()) {
            Allocator plugin = memory.open("late");
            memory.free(plugin.allocate(4 * MIB, 0, 0), 0);

            assertThat(plugin.statistics(0).liveBlocks()).isZero();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(60 * MIB);
            plugin.close();
            assertThat(gpu.memory().freeBytes(0)).isEqualTo(64 * MIB);
        }
    }

    @Test
    void oneThatClosesItselfIsClosedAllTheSameAndOnce() {
        drop("closing", """
                int closed;
                public long allocate(long byteSize, int device, long stream) {
                    return source.acquire(byteSize, 256, device).address();
                }
                public void free(long address, long byteSize, int device, long stream) {
                    source.release(new Segment(address, byteSize, device));
                    close();
                }
                public void close() { System.setProperty("closing.test", String.valueOf(++closed)); }
                """);
        try (DeviceMemory memory = open()) {
            Allocator plugin = memory.open("closing");
            memory.free(plugin.allocate(MIB, 0, 0), 0);
            plugin.close();
            plugin.close();

            assertThat(System.clearProperty("closing.test")).isEqualTo("2");
        }
    }

    /// An allocator over `linear` with the given methods.
    private void drop(String name, String methods) {
        plugins.drop(name + ".jar", "acme.Hostile", """
                package acme;
                import io.cistern.spi.*;
                public class Hostile implements AllocatorProvider {
                    public int spiVersion() { return SPI_VERSION; }
                    public String name() { return "%s"; }
                    public DeviceAllocator open(AllocatorContext context) {
                        RangeSource source = context.ranges("linear");
                        return new DeviceAllocator() {
                            %s
                        };
                    }
                }
                """.formatted(name, methods));
    }
}
