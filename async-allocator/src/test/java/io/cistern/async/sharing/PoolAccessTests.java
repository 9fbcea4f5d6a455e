package io.cistern.async.sharing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.cistern.cuda.AccessRights;
import io.cistern.cuda.CudaDriver;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.MemoryPoolProperties;
import io.cistern.cuda.Peers;
import io.cistern.errors.SharingException.Reason;
import io.cistern.simulated.SimulatedGpu;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

class PoolAccessTests {
    private static final int HOME = 1;

    private final SimulatedGpu gpu = SimulatedGpu.builder().devices(4).build();
    private final long pool = gpu.pools().create(MemoryPoolProperties.onDevice(HOME));
    private final PoolAccess access = new PoolAccess(gpu, HOME, pool);

    @AfterEach
    void close() {
        assertThat(gpu.misuses()).isEmpty();
        gpu.close();
    }

    @Test
    void onlyThePoolsDeviceHasAccessAtFirst() {
        assertThat(access.device()).isEqualTo(HOME);
        assertThat(access.pool()).isEqualTo(pool);
        assertThat(access.of(HOME)).isEqualTo(AccessRights.READ_WRITE);
        assertThat(access.of(0)).isEqualTo(AccessRights.NONE);
        assertThat(access.devices()).containsExactly(HOME);
    }

    @Test
    void grantedDevicesUseThePoolUntilThatIsRevoked() {
        access.grant(3);
        access.grant(0);
        assertThat(access.devices()).as("its own device first").containsExactly(HOME, 0, 3);
        assertThat(gpu.pools().access(HOME, pool, 3)).isEqualTo(AccessRights.READ_WRITE);
        access.revoke(3);
        assertThat(access.devices()).containsExactly(HOME, 0);
        assertThat(gpu.pools().access(HOME, pool, 3)).isEqualTo(AccessRights.NONE);
    }

    @Test
    void thePoolsOwnDeviceKeepsItsAccess() {
        access.grant(HOME);
        assertThat(gpu.calls().of(DriverCall.MEM_POOL_SET_ACCESS)).isZero();
        assertThatIllegalArgumentException().isThrownBy(() -> access.revoke(HOME));
        assertThat(access.devices()).containsExactly(HOME);
    }

    @Test
    void aDeviceWithoutAPathToTheMemoryIsRefused() {
        CudaDriver apart = mock(CudaDriver.class);
        Peers peers = mock(Peers.class);
        when(apart.pools()).thenReturn(gpu.pools());
        when(apart.peers()).thenReturn(peers);
        when(peers.canAccess(HOME, 2)).thenReturn(true); // the other way round
        SharedPoolTests.assertRefused(Reason.NOT_SUPPORTED, () -> new PoolAccess(apart, HOME, pool).grant(2));
        assertThat(access.devices()).containsExactly(HOME);
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void bothSidesOfASharedPoolHaveRightsOfTheirOwn(@TempDir Path folder) {
        Path path = folder.resolve("pool");
        ExportedPool exported = ExportedPool.builder(gpu, HOME).serve(path);
        ImportedPool imported = ImportedPool.connect(gpu, path);
        PoolAccess out = exported.access();
        PoolAccess in = imported.access();
        assertThat(out.device()).isEqualTo(exported.device()).isEqualTo(HOME);
        assertThat(in.device()).isEqualTo(imported.device()).isEqualTo(HOME);
        out.grant(0);
        in.grant(2);
        assertThat(out.devices()).containsExactly(HOME, 0);
        assertThat(in.devices()).containsExactly(HOME, 2);
        imported.close();
        exported.close();
        assertThatIllegalStateException().isThrownBy(() -> out.grant(2)).withMessageContaining("is closed");
        assertThatIllegalStateException().isThrownBy(() -> in.revoke(2)).withMessageContaining("is closed");
        assertThatIllegalStateException().isThrownBy(in::devices);
    }
}
