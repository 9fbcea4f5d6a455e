package io.cistern.cuda.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class MemcpyTests {
    private static final int ELEMENTS = 1001;

    private final Arena arena = Arena.ofConfined();

    @AfterEach
    void close() {
        arena.close();
    }

    /// The function of the C library, and the fallback.
    private static List<@Nullable MethodHandle> both() {
        List<@Nullable MethodHandle> both = new ArrayList<>();
        both.add(Memcpy.link(Linker.nativeLinker().defaultLookup()));
        both.add(Memcpy.link(_ -> Optional.empty()));
        return both;
    }

    private static List<MemorySegment> arrays() {
        List<MemorySegment> arrays = List.of(
                MemorySegment.ofArray(new byte[ELEMENTS]),
                MemorySegment.ofArray(new short[ELEMENTS]),
                MemorySegment.ofArray(new char[ELEMENTS]),
                MemorySegment.ofArray(new int[ELEMENTS]),
                MemorySegment.ofArray(new float[ELEMENTS]),
                MemorySegment.ofArray(new long[ELEMENTS]),
                MemorySegment.ofArray(new double[ELEMENTS]));
        arrays.forEach(array -> {
            byte[] bytes = new byte[Math.toIntExact(array.byteSize())];
            new Random(bytes.length).nextBytes(bytes);
            array.copyFrom(MemorySegment.ofArray(bytes));
        });
        return arrays;
    }

    @Test
    void theFunctionIsThereAndTheFallbackIsWithoutIt() {
        assertThat(both().getFirst()).isNotNull();
        assertThat(both().getLast()).isNull();
    }

    @Test
    void arraysOfAllTypesAreCopiedFromAnyOffset() {
        for (MethodHandle memcpy : both()) {
            for (MemorySegment array : arrays()) {
                for (int offset : new int[] {0, 1, 8, 13}) {
                    MemorySegment source = array.asSlice(offset, array.byteSize() - offset - 3);
                    MemorySegment target = arena.allocate(source.byteSize() + 1);
                    Memcpy.copy(memcpy, source, target);
                    assertThat(target.asSlice(0, source.byteSize()).mismatch(source))
                            .as("%s from %d", array, offset)
                            .isEqualTo(-1);
                    assertThat(target.get(ValueLayout.JAVA_BYTE, source.byteSize()))
                            .as("the byte behind")
                            .isZero();
                }
            }
        }
    }

    @Test
    void anArrayThatMayOnlyBeReadIsCopied() {
        MemorySegment array = MemorySegment.ofArray(new byte[] {1, 2, 3});
        MemorySegment target = arena.allocate(3);
        Memcpy.copy(array.asReadOnly(), target);
        assertThat(target.toArray(ValueLayout.JAVA_BYTE)).containsExactly(1, 2, 3);
    }

    @Test
    void aTargetThatIsTooShortOrReadOnlyIsRefused() {
        MemorySegment array = MemorySegment.ofArray(new byte[3]);
        for (MethodHandle memcpy : both()) {
            assertThatExceptionOfType(IndexOutOfBoundsException.class)
                    .isThrownBy(() -> Memcpy.copy(memcpy, array, arena.allocate(2)));
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(
                            () -> Memcpy.copy(memcpy, array, arena.allocate(3).asReadOnly()));
        }
    }

    @Test
    void aClosedArenaIsRefused() {
        Arena closed = Arena.ofConfined();
        MemorySegment target = closed.allocate(3);
        closed.close();
        for (MethodHandle memcpy : both()) {
            assertThatExceptionOfType(IllegalStateException.class)
                    .isThrownBy(() -> Memcpy.copy(memcpy, MemorySegment.ofArray(new byte[3]), target));
        }
    }
}
