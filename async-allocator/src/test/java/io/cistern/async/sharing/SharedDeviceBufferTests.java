package io.cistern.async.sharing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.Allocator;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.async.AsyncProvider;
import io.cistern.buffers.DeviceBuffer;
import io.cistern.errors.SharingException.Reason;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Buffers that one process publishes and another opens, without an address.
@EnabledOnOs(OS.LINUX)
class SharedDeviceBufferTests {
    private TwoGpus gpus;
    private ExportedPool exported;
    private DeviceMemory owner;
    private DeviceMemory guest;
    private CudaStream ownerStream;
    private CudaStream guestStream;

    @BeforeEach
    void open(@TempDir Path folder) {
        gpus = new TwoGpus(folder);
        exported = gpus.serve();
        Catalog catalog = Catalog.of(List.of(new AsyncProvider()), List.of());
        owner = DeviceMemory.builder(gpus.owner).catalog(catalog).open();
        guest = DeviceMemory.builder(gpus.guest).catalog(catalog).open();
        ownerStream = CudaStream.open(owner, 0);
        guestStream = CudaStream.open(guest, 0);
    }

    @AfterEach
    void close() {
        ownerStream.close();
        guestStream.close();
        owner.close();
        guest.close();
        exported.close();
        assertThat(gpus.owner.misuses()).isEmpty();
        assertThat(gpus.guest.misuses()).isEmpty();
        gpus.close();
    }

    @Test
    void bothSidesUseTheSameBuffer() {
        try (Allocator pool = exported.allocator(owner);
                DeviceBuffer weights = DeviceBuffer.allocate(pool, 1 << 20, ownerStream)) {
            weights.fill((byte) 42);
            try (ExportedBuffer _ = exported.publish("weights", weights);
                    ImportedPool imported = gpus.connect()) {
                try (DeviceBuffer seen = imported.open("weights", guestStream)) {
                    assertThat(seen.byteSize()).isEqualTo(1 << 20);
                    byte[] bytes = new byte[1 << 20];
                    seen.copyTo(MemorySegment.ofArray(bytes));
                    assertThat(bytes).containsOnly(42);
                    seen.slice(0, 10).fill((byte) 43);
                }
                assertThat(exported.importers()).isEmpty();
            }
            byte[] first = new byte[10];
            weights.slice(0, 10).copyTo(MemorySegment.ofArray(first));
            assertThat(first).containsOnly(43);
        }
    }

    @Test
    void bufferOfOtherMemoryAndUnknownNamesAreRefused() {
        try (Allocator other = owner.open("async");
                DeviceBuffer elsewhere = DeviceBuffer.allocate(other, 1000, ownerStream);
                ImportedPool imported = gpus.connect()) {
            SharedPoolTests.assertRefused(Reason.NOT_SHAREABLE, () -> exported.publish("elsewhere", elsewhere));
            SharedPoolTests.assertRefused(Reason.UNKNOWN_NAME, () -> imported.open("elsewhere", guestStream));
            assertThatIllegalArgumentException().isThrownBy(() -> imported.open("elsewhere", ownerStream));
            assertThatIllegalArgumentException().isThrownBy(() -> exported.allocator(guest));
        }
    }
}
