package io.cistern.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class CudaDriversTest {
    @Test
    void theFirstAvailableIsOpenedAndTheRestIsNotAsked() {
        CudaDriverProvider broken = provider("broken", "no library");
        CudaDriverProvider works = provider("works", null);
        CudaDriverProvider other = provider("other", null);
        CudaDriver driver = mock(CudaDriver.class);
        when(works.open()).thenReturn(driver);
        assertThat(CudaDrivers.openBest(List.of(broken, works, other))).isSameAs(driver);
        verify(broken, never()).open();
        verify(other, never()).unavailableBecause();
    }

    @Test
    void withoutAnAvailableOneEachReasonIsTold() {
        assertThatThrownBy(() -> CudaDrivers.openBest(List.of(provider("a", "no library"), provider("b", "no device"))))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage(
                        "no CUDA driver can be used: a: no library; b: no device; to do without a GPU, add simulated-gpu");
        assertThatThrownBy(() -> CudaDrivers.openBest(List.of()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("no CudaDriverProvider")
                .hasMessageEndingWith("add simulated-gpu");
    }

    @Test
    void providersComeByPriority() {
        assertThat(CudaDrivers.providers())
                .isSortedAccordingTo((a, b) -> Integer.compare(b.priority(), a.priority()))
                .extracting(CudaDriverProvider::name)
                .contains("cuda");
    }

    private static CudaDriverProvider provider(String name, String reason) {
        CudaDriverProvider provider = mock(CudaDriverProvider.class);
        when(provider.name()).thenReturn(name);
        when(provider.unavailableBecause()).thenReturn(Optional.ofNullable(reason));
        return provider;
    }
}
