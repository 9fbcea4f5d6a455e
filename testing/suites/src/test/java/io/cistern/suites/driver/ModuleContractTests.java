package io.cistern.suites.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cistern.cuda.CudaResult;
import io.cistern.cuda.DriverCall;
import io.cistern.cuda.Modules.Extent;
import io.cistern.cuda.Modules.Grid;
import io.cistern.cuda.kernels.MemoryKernels;
import org.junit.jupiter.api.Test;

/// Modules, functions, launches.
abstract class ModuleContractTests extends DriverContractTests {
    ModuleContractTests(DriverContract suite) {
        super(suite);
    }

    @Test
    void textThatIsNoPtxIsRefused() {
        assertFails(
                () -> driver.modules().load(DEVICE, "this is not PTX"),
                DriverCall.MODULE_LOAD_DATA,
                CudaResult.INVALID_PTX,
                CudaResult.INVALID_IMAGE);
    }

    @Test
    void aFunctionThatTheModuleHasNotIsNotFound() {
        long module = driver.modules().load(DEVICE, MemoryKernels.ptx());
        afterwards(() -> driver.modules().unload(DEVICE, module));
        assertFails(
                () -> driver.modules().function(DEVICE, module, "no_such_kernel"),
                DriverCall.MODULE_GET_FUNCTION,
                CudaResult.NOT_FOUND);
    }

    @Test
    void aKernelRunsWithItsArguments() {
        long module = driver.modules().load(DEVICE, MemoryKernels.ptx());
        afterwards(() -> driver.modules().unload(DEVICE, module));
        long write = driver.modules().function(DEVICE, module, "cistern_write_sequence_u32");
        long stream = stream();
        long address = linear(400);
        driver.modules().launch(DEVICE, write, Grid.of(2, 64), stream, address, 100L, 7);
        int[] words = host(400).readFrom(address, stream).words();
        assertThat(words).startsWith(7, 8, 9).endsWith(106);
    }

    @Test
    void aGridMayHaveThreeDimensions() {
        long module = driver.modules().load(DEVICE, MemoryKernels.ptx());
        afterwards(() -> driver.modules().unload(DEVICE, module));
        long write = driver.modules().function(DEVICE, module, "cistern_write_sequence_u32");
        long stream = stream();
        long address = linear(400);
        Grid grid = Grid.of(new Extent(2, 2, 2), new Extent(8, 4, 2));
        driver.modules().launch(DEVICE, write, grid, stream, address, 100L, 7);
        assertThat(host(400).readFrom(address, stream).words())
                .startsWith(7, 8, 9)
                .endsWith(106);
        assertFails(
                () -> driver.modules()
                        .launch(DEVICE, write, Grid.of(Extent.of(1), Extent.of(64, 64)), stream, address, 0L, 0),
                DriverCall.LAUNCH_KERNEL,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void argumentsOfOtherTypesAreRefused() {
        long module = driver.modules().load(DEVICE, MemoryKernels.ptx());
        afterwards(() -> driver.modules().unload(DEVICE, module));
        long stream = stream();
        long write = driver.modules().function(DEVICE, module, "cistern_write_sequence_u32");
        for (Object wrong : new Object[] {"text", 'c', true}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> driver.modules().launch(DEVICE, write, Grid.of(1, 64), stream, 0L, 0L, wrong))
                    .withMessageContaining(wrong.getClass().getName());
        }
    }

    @Test
    void anEmptyGridIsAnInvalidValue() {
        long module = driver.modules().load(DEVICE, MemoryKernels.ptx());
        afterwards(() -> driver.modules().unload(DEVICE, module));
        long write = driver.modules().function(DEVICE, module, "cistern_write_sequence_u32");
        long stream = stream();
        assertFails(
                () -> driver.modules().launch(DEVICE, write, Grid.of(0, 64), stream, 0L, 0L, 0),
                DriverCall.LAUNCH_KERNEL,
                CudaResult.INVALID_VALUE);
    }

    @Test
    void kernelsCountEveryWordThatDiffers() {
        long stream = stream();
        long address = linear(4000);
        long counter = linear(8);
        try (MemoryKernels kernels = MemoryKernels.load(driver, DEVICE)) {
            driver.copies().fillWords(DEVICE, counter, 0, 2, stream);
            kernels.writeSequence(address, 1000, 0, stream);
            driver.copies().fillWords(DEVICE, address + 40, -1, 3, stream);
            kernels.countSequenceMismatches(address, 1000, 0, counter, stream);
            assertThat(host(8).readFrom(counter, stream).words()).containsExactly(3, 0);
            kernels.countMismatches(address, 1000, -1, counter, stream);
            assertThat(host(8).readFrom(counter, stream).words()).containsExactly(3 + 997, 0);
        }
    }
}
