package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.Allocator;
import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.loader.functions.AllocatorFunctions;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.ValueLayout;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A changed configuration, or a new version of a plug-in, is applied when somebody asks, and only then.
class ReloadTests {
    private static final long MIB = 1 << 20;

    @TempDir
    private Path folder;

    private final SimulatedGpu gpu =
            SimulatedGpu.builder().devices(2).capacityBytes(64 * MIB).build();
    private PluginFolder plugins;
    private DeviceMemory memory;

    @BeforeEach
    void open() throws IOException {
        plugins = new PluginFolder(folder);
        plugins.properties.put(
                "cistern.config", folder.resolve("cistern.properties").toString());
        configure("cistern.allocator=caching\n");
        memory = DeviceMemory.builder(gpu).catalog(plugins.discover()).open();
    }

    @AfterEach
    void nothingIsLost() {
        memory.close();
        assertThat(memory.allocators()).isEmpty();
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void aChangedFileIsAppliedOnRequestBesideOldBlocks() throws IOException {
        Allocator first = memory.current(0);
        long old = memory.allocate(MIB, 0, 0);
        configure("cistern.allocator=direct\n");
        assertThat(memory.current(0)).isSameAs(first);

        assertThat(memory.currents().reload()).containsExactly("device 0: caching -> direct");

        long young = memory.allocate(MIB, 0, 0);
        assertThat(memory.current(0).statistics(0).liveBlocks()).isEqualTo(1);
        memory.free(young, 0);
        assertThat(first.isDrained()).isFalse();
        memory.free(old, 0);
        assertThat(first.isDrained()).isTrue();
    }

    @Test
    void nothingHappensWhereNothingChanged() {
        Allocator first = memory.current(0);

        assertThat(memory.currents().reload()).isEmpty();
        assertThat(memory.current(0)).isSameAs(first);
    }

    @Test
    void whatCannotBeOpenedChangesNothing() throws IOException {
        Allocator first = memory.current(0);
        Catalog catalog = memory.currents().catalog();
        configure("cistern.allocator=caching:no_such=1\n");

        assertThatThrownBy(memory.currents()::reload)
                .isInstanceOf(ConfigurationException.class)
                .hasMessageStartingWith("cistern.allocator in " + folder.resolve("cistern.properties")
                        + ": 'caching' has no option 'no_such'");

        assertThat(memory.current(0)).isSameAs(first);
        assertThat(memory.currents().catalog()).isSameAs(catalog);
        memory.free(memory.allocate(MIB, 0, 0), 0);
        assertThat(memory.allocators()).containsExactly(first);
    }

    @Test
    void ifOneDeviceCannotFollowNoneDoes() throws IOException {
        Allocator zero = memory.current(0);
        Allocator one = memory.current(1);
        configure("cistern.device.0.allocator=direct\ncistern.device.1.allocator=nobody\n");

        assertThatThrownBy(memory.currents()::reload).hasMessageContaining("no allocator is named 'nobody'");

        assertThat(memory.current(0)).isSameAs(zero);
        assertThat(memory.current(1)).isSameAs(one);
        assertThat(memory.allocators()).containsExactly(zero);
    }

    @Test
    void eachDeviceFollowsItsOwnSetting() throws IOException {
        assertThat(memory.current(0)).isSameAs(memory.current(1));
        configure("cistern.allocator=caching\ncistern.device.1.allocator=direct\n");

        assertThat(memory.currents().reload()).containsExactly("device 1: caching -> direct");

        assertThat(memory.current(0).name()).isEqualTo("caching");
        assertThat(memory.current(1).name()).isEqualTo("direct");
    }

    @Test
    void whatTheProgramChoseStays() throws IOException {
        Allocator mine = memory.setCurrent("direct");
        configure("cistern.allocator=caching:fit=tight\n");

        assertThat(memory.currents().reload()).isEmpty();
        assertThat(memory.current(0)).isSameAs(mine);
    }

    @Test
    void aNewVersionOfAPluginTakesOver() throws IOException {
        plugins.drop("acme.jar", "acme.A", Sources.recycling("acme.A", "acme"));
        configure("cistern.allocator=acme\n");
        assertThat(memory.currents().reload()).isEmpty();
        Allocator first = memory.current(0);
        long old = memory.allocate(MIB, 0, 0);

        plugins.drop("acme.jar", "acme.A", Sources.recycling("acme.A", "acme").replace("poll()", "pollLast()"));
        assertThat(memory.currents().reload()).containsExactly("device 0: acme -> acme");
        assertThat(memory.current(0)).isNotSameAs(first);
        memory.free(old, 0);
        assertThat(first.isDrained()).isTrue();

        Allocator second = memory.current(0);
        Files.writeString(plugins.path.resolve("acme.jar"), "half of a J");
        assertThatThrownBy(memory.currents()::reload).hasMessageContaining("no allocator is named 'acme'");
        assertThat(memory.current(0)).isSameAs(second);
        memory.free(memory.allocate(MIB, 0, 0), 0);
    }

    @Test
    void aReplacedPluginIsUnloadedThoughItFailedACallFromC() throws Exception {
        String sound = Sources.recycling("acme.A", "acme");
        plugins.drop(
                "acme.jar",
                "acme.A",
                sound.replace("poll();", "poll(); if (byteSize == 4096) throw new Mine();")
                        .replace("record Shelf", "static class Mine extends RuntimeException {} record Shelf"));
        configure("cistern.allocator=acme\n");
        memory.currents().reload();
        AllocatorFunctions functions = AllocatorFunctions.of(memory);
        assertThat(malloc(functions, 4096)).isZero();
        WeakReference<Class<?>> mine =
                new WeakReference<>(functions.lastFailure().orElseThrow().getClass());
        assertThat(malloc(functions, -1)).as("this is the last failure").isZero();
        plugins.drop("acme.jar", "acme.A", sound);
        assertThat(memory.currents().reload()).containsExactly("device 0: acme -> acme");
        for (int tries = 0; tries < 100 && mine.get() != null; tries++) {
            System.gc();
            Thread.sleep(10);
        }
        assertThat(mine.get()).isNull();
    }

    @SuppressWarnings("restricted")
    private static long malloc(AllocatorFunctions functions, long byteSize) {
        FunctionDescriptor shape = FunctionDescriptor.of(
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG);
        try {
            return (long) Linker.nativeLinker()
                    .downcallHandle(functions.malloc(), shape)
                    .invokeExact(byteSize, 0, 0L);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    private void configure(String text) throws IOException {
        PluginFolder.own(Files.writeString(folder.resolve("cistern.properties"), text));
    }
}
