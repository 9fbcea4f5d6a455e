package io.cistern.handles.cublas;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

/// What a product says of its matrices.
class GemmTests {
    private static final Gemm GEMM = Gemm.of(3, 5, 7);

    @Test
    void denseMatricesAreAsLongAsTheirRows() {
        assertThat(GEMM.lda()).isEqualTo(3);
        assertThat(GEMM.ldb()).isEqualTo(7);
        assertThat(GEMM.ldc()).isEqualTo(3);
        assertThat(GEMM.elementsA()).isEqualTo(21);
        assertThat(GEMM.elementsB()).isEqualTo(35);
        assertThat(GEMM.elementsC()).isEqualTo(15);
    }

    @Test
    void aTransposedMatrixHasTheOtherRows() {
        Gemm transposed = GEMM.withTransposedA().withTransposedB();
        assertThat(transposed.lda()).isEqualTo(7);
        assertThat(transposed.ldb()).isEqualTo(5);
        assertThat(transposed.elementsA()).isEqualTo(21);
        assertThat(transposed.elementsB()).isEqualTo(35);
        assertThat(transposed.withTransposedA()).isEqualTo(transposed);
    }

    @Test
    void columnsMayLieApart() {
        Gemm apart = GEMM.withLeadingDimensions(10, 20, 30);
        assertThat(apart.elementsA()).isEqualTo(6 * 10 + 3);
        assertThat(apart.elementsB()).isEqualTo(4 * 20 + 7);
        assertThat(apart.elementsC()).isEqualTo(4 * 30 + 3);
        assertThat(apart.withTransposedA().lda()).as("set, so it stays").isEqualTo(10);
        assertThat(apart.withLeadingDimensions(0, 0, 0)).isEqualTo(GEMM);
    }

    @Test
    void aBatchFollowsWithoutAGap() {
        GemmBatch batch = GEMM.withLeadingDimensions(4, 0, 0).batch(10);
        assertThat(batch).isEqualTo(new GemmBatch(batch.gemm(), 10, 28, 35, 15));
        assertThat(batch.elementsC()).isEqualTo(150);
        assertThat(batch.withStrides(0, 0, 15).elementsA()).isEqualTo(6 * 4 + 3);
    }

    @Test
    void sizesAreChecked() {
        assertThatIllegalArgumentException().isThrownBy(() -> Gemm.of(0, 5, 7)).withMessageContaining("m: 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> GEMM.withLeadingDimensions(2, 0, 0))
                .withMessageContaining("lda: 2, must be at least the matrix's rows, 3");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> GEMM.withType(ElementType.FLOAT64).withTf32())
                .withMessageContaining("FLOAT64");
        assertThatIllegalArgumentException().isThrownBy(() -> GEMM.batch(0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> GEMM.batch(2).withStrides(21, 35, 14))
                .withMessageContaining("strideC: 14");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> GEMM.batch(2).withStrides(-1, 35, 15))
                .withMessageContaining("strideA: -1");
        assertThatIllegalArgumentException().isThrownBy(() -> GEMM.batch(2).withStrides(0, Long.MAX_VALUE, 15));
    }

    @Test
    void sizesBeyondAllMemoryAreNoNegativeNumbers() {
        Gemm huge = Gemm.of(Integer.MAX_VALUE, Integer.MAX_VALUE, Integer.MAX_VALUE);
        assertThat(huge.elementsA()).isPositive();
        assertThatIllegalArgumentException().isThrownBy(() -> huge.batch(1)).withMessageContaining("strideA: ");
        GemmBatch far = GEMM.batch(2).withStrides(1L << 57, 1L << 57, 1L << 57);
        assertThat(far.elementsA()).isEqualTo((1L << 57) + 21);
    }

    @Test
    void factorsAreNoPartOfTheShape() {
        assertThat(GEMM.hasShapeOf(GEMM.withAlpha(2).withBeta(3))).isTrue();
        assertThat(GEMM.hasShapeOf(GEMM.withTf32())).isFalse();
        assertThat(GEMM.hasShapeOf(GEMM.withType(ElementType.FLOAT16))).isFalse();
    }
}
