package io.cistern.cuda.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.CudaException;
import io.cistern.cuda.CudaResult;
import io.cistern.cuda.Sharing;
import io.cistern.cuda.process.Descriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/// What of [Sharing] arrives in C, and what comes back.
final class SharingMarshallingTests extends OverFakeLibrary {

    private Sharing sharing;

    @BeforeAll
    void openSharing() {
        sharing = driver.sharing();
    }

    private static byte[] handle(int value) {
        byte[] handle = new byte[Sharing.HANDLE_BYTES];
        Arrays.fill(handle, (byte) value);
        return handle;
    }

    /// Different in each byte, so that nothing is moved or cut off unseen.
    private static byte[] counting() {
        byte[] handle = new byte[Sharing.HANDLE_BYTES];
        for (int i = 0; i < handle.length; i++) {
            handle[i] = (byte) i;
        }
        return handle;
    }

    private static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }

    @Test
    void aPoolIsExportedAsADescriptorThatNewProgramsDoNotInherit() throws Exception {
        try (Descriptor exported = new Descriptor(sharing.exportPool(1, POOL))) {
            // O_CLOEXEC, in octal.
            assertThat(Files.readString(Path.of("/proc/self/fdinfo/" + exported.number())))
                    .containsPattern("flags:\\s+0?2\\d{6}\\b");
        }
        assertCalls("cuMemPoolExportToShareableHandle(d00000005, 1, 0)");
    }

    @Test
    void aDescriptorStandsWhereOtherHandlesHaveAPointer() {
        assertThat(sharing.importPool(1, 17)).isEqualTo(0xd00000003L);
        assertCalls("cuMemPoolImportFromShareableHandle(fd 17, 1, 0)");
    }

    @Test
    void fabricHandlesAreBytes() {
        assertThat(sharing.exportPoolToFabric(1, POOL)).isEqualTo(handle(0xfa));
        assertThat(sharing.importPoolFromFabric(1, counting())).isEqualTo(0xd00000003L);
        assertCalls(
                "cuMemPoolExportToShareableHandle(d00000005, 8, 0)",
                "cuMemPoolImportFromShareableHandle(" + hex(counting()) + ", 8, 0)");
    }

    @Test
    void pointers() {
        assertThat(sharing.exportPointer(1, ADDRESS)).isEqualTo(handle(0xab));
        assertThat(sharing.importPointer(1, POOL, counting())).isEqualTo(0xa00000001L);
        assertCalls(
                "cuMemPoolExportPointer(7f1234567800)", "cuMemPoolImportPointer(d00000005, " + hex(counting()) + ")");
    }

    @Test
    void eventsGoByValue() {
        sharing.createEvent(1);
        assertThat(sharing.exportEvent(1, EVENT)).isEqualTo(handle(0xe1));
        assertThat(sharing.openEvent(1, counting())).isEqualTo(0x400000002L);
        assertCalls(
                "cuEventCreate(6)", "cuIpcGetEventHandle(400000009)", "cuIpcOpenEventHandle(" + hex(counting()) + ")");
    }

    @Test
    void theOlderHandleIsRefusedWithTheReason() {
        assertThat(sharing.legacyHandle(1, ADDRESS)).isEqualTo(handle(0x1c));
        library.fail("cuIpcGetMemHandle", CudaResult.INVALID_VALUE.code());
        assertThatThrownBy(() -> sharing.legacyHandle(1, ADDRESS))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining(Sharing.ONLY_LINEAR);
    }

    @Test
    void aHandleOfAnotherLengthIsRefusedBeforeC() {
        assertThatThrownBy(() -> sharing.importPointer(1, POOL, new byte[63]))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> sharing.openEvent(1, new byte[65])).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> sharing.importPoolFromFabric(1, new byte[0]))
                .isInstanceOf(IllegalArgumentException.class);
        assertCalls();
    }

    @Test
    void aRefusalNamesTheCall() {
        library.fail("cuMemPoolExportToShareableHandle", CudaResult.INVALID_VALUE.code());
        assertThatThrownBy(() -> sharing.exportPool(1, POOL))
                .isInstanceOf(CudaException.class)
                .hasMessageContaining("cuMemPoolExportToShareableHandle(device=1, pool=0xd00000005, handleType=1)");
    }
}
