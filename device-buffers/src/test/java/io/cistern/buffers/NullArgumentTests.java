package io.cistern.buffers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import io.cistern.Allocator;
import io.cistern.CudaEvent;
import io.cistern.CudaStream;
import io.cistern.DeviceMemory;
import io.cistern.buffers.DeviceBuffer.ForeignOwner;
import io.cistern.buffers.dlpack.Dlpack;
import io.cistern.buffers.dlpack.TensorFlag;
import io.cistern.buffers.dlpack.TensorLayout;
import io.cistern.buffers.dlpack.TensorType;
import io.cistern.cuda.MemoryAdvice;
import io.cistern.cuda.MemoryLocation;
import io.cistern.cuda.Modules.Extent;
import io.cistern.cuda.Modules.Grid;
import io.cistern.cuda.kernels.MemoryKernels;
import io.cistern.internal.direct.DirectProvider;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.catalog.Catalog;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whatever is given as null, the error says which argument that was.
final class NullArgumentTests {
    private final SimulatedGpu gpu = SimulatedGpu.builder().build();
    private final DeviceMemory memory = DeviceMemory.builder(gpu)
            .catalog(Catalog.of(List.of(new DirectProvider()), List.of()))
            .open();
    private final Map<Class<?>, Object> samples = new HashMap<>();
    private final Arena arena = Arena.ofConfined();

    @BeforeEach
    void makeSamples() {
        memory.setCurrent("direct");
        CudaStream stream = CudaStream.open(memory, 0);
        MemorySegment host = arena.allocate(256);
        sample(DeviceMemory.class, memory);
        sample(Allocator.class, memory.current(0));
        sample(CudaStream.class, stream);
        sample(CudaEvent.class, CudaEvent.open(memory, 0));
        sample(PinnedMemory.class, PinnedMemory.of(memory));
        sample(MemorySegment.class, host);
        sample(Buffer.class, ByteBuffer.allocateDirect(256));
        sample(MemoryLayout.class, ValueLayout.JAVA_INT);
        sample(CopyMode.class, CopyMode.BLOCKING);
        sample(CopyBatch.class, new CopyBatch());
        sample(CopyOptions.class, CopyOptions.of(memory));
        sample(ForeignOwner.class, (ForeignOwner) (_, _) -> {});
        sample(LongConsumer.class, (LongConsumer) _ -> {});
        sample(MemoryLocation.class, MemoryLocation.device(0));
        sample(MemoryAdvice.class, MemoryAdvice.values()[0]);
        sample(TensorLayout.class, TensorLayout.compact(TensorType.UINT8, 256));
        sample(Extent.class, Extent.of(1, 1));
        sample(Grid.class, Grid.of(1, 1));
        sample(String.class, "cistern_write_sequence_u32");
        sample(Object.class, 1);
        sample(TensorType.class, TensorType.UINT8);
        sample(TensorFlag.class, TensorFlag.READ_ONLY);
        sample(DeviceArena.Builder.class, DeviceArena.builder(memory));
        CudaModule module = CudaModule.load(memory, 0, MemoryKernels.ptx());
        sample(CudaModule.class, module);
        sample(CudaFunction.class, module.function("cistern_write_sequence_u32"));
        sampleBuffers(stream);
    }

    private void sampleBuffers(CudaStream stream) {
        DeviceBuffer buffer = DeviceBuffer.allocate(256, stream);
        sample(DeviceBuffer.class, buffer);
        sample(List.class, Collections.singletonList(null));
        sample(DeviceElements.class, buffer.elements(ValueLayout.JAVA_INT));
        sample(DeviceRows.class, buffer.rows(0, 64, 32, 4));
        sample(PinnedBuffer.class, PinnedMemory.of(memory).allocate(256));
    }

    private void sample(Class<?> type, Object object) {
        samples.put(type, object);
    }

    @AfterEach
    void end() {
        memory.close();
        gpu.close();
        arena.close();
    }

    private CudaFunction kernel() {
        return (CudaFunction) samples.get(CudaFunction.class);
    }

    @Test
    void aKernelsArgumentIsNamedByItsPlace() {
        CudaStream stream = (CudaStream) samples.get(CudaStream.class);
        assertThatNullPointerException()
                .isThrownBy(() -> kernel().launch(1, 1, stream, samples.get(DeviceBuffer.class), null, 7))
                .withMessageContaining("argument 2 of kernel cistern_write_sequence_u32 is null");
    }

    @ParameterizedTest
    @ValueSource(
            classes = {
                CopyBatch.class,
                CopyOptions.class,
                CudaFunction.class,
                CudaModule.class,
                DeviceArena.Builder.class,
                DeviceBuffer.class,
                DeviceElements.class,
                DeviceRows.class,
                Dlpack.class,
                ManagedMemory.class,
                PinnedBuffer.class,
                PinnedMemory.class,
                TensorLayout.class
            })
    void noNullPointerIsWithoutText(Class<?> type) throws IllegalAccessException {
        List<String> silent = new ArrayList<>();
        for (Method method : type.getDeclaredMethods()) {
            if (!Modifier.isPublic(method.getModifiers())
                    || method.isSynthetic()
                    || method.getName().equals("equals")) {
                continue;
            }
            for (int at = 0; at < method.getParameterCount(); at++) {
                Class<?> parameter = method.getParameterTypes()[at];
                if (!parameter.isPrimitive() && isSilent(method, at)) {
                    silent.add(method + ", argument " + (at + 1));
                }
            }
        }
        assertThat(silent).isEmpty();
    }

    private boolean isSilent(Method method, int at) throws IllegalAccessException {
        Object[] arguments =
                Arrays.stream(method.getParameterTypes()).map(this::argument).toArray();
        arguments[at] = missing(method, at);
        try {
            method.invoke(samples.get(method.getDeclaringClass()), arguments);
            return false;
        } catch (InvocationTargetException thrown) {
            return thrown.getCause() instanceof NullPointerException without
                    && (without.getMessage() == null || without.getMessage().isEmpty());
        }
    }

    /// Null, or several arguments of which one is null.
    private static @Nullable Object missing(Method method, int at) {
        return method.isVarArgs() && at == method.getParameterCount() - 1
                ? Array.newInstance(method.getParameterTypes()[at].componentType(), 1)
                : null;
    }

    private Object argument(Class<?> type) {
        if (type.isPrimitive()) {
            return Array.get(Array.newInstance(type, 1), 0); // 0
        }
        if (type.isArray()) {
            return Array.newInstance(type.componentType(), 0);
        }
        assertThat(samples).as("a sample of each type").containsKey(type);
        return samples.get(type);
    }
}
