package io.cistern.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import io.cistern.cuda.settings.Settings;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class CudaDriversTests {
    private static final Settings NOTHING_SET = new Settings(Map.of(), Map.of());

    private final CudaDriverProvider cuda = provider("cuda", null);
    private final CudaDriverProvider noCuda = provider("cuda", "no library");
    private final CudaDriverProvider simulated = provider("simulated", null);

    @Test
    void theFirstAvailableIsChosenAndTheRestIsNotAsked() {
        CudaDriverProvider broken = provider("broken", "no library");

        DriverChoice choice = CudaDrivers.choose(List.of(broken, cuda, simulated), NOTHING_SET);

        assertThat(choice).isEqualTo(new DriverChoice(cuda, false, "broken: no library"));
        verify(simulated, never()).unavailableBecause();
    }

    @Test
    void withoutAnAvailableOneEachReasonIsTold() {
        assertThatIllegalStateException()
                .isThrownBy(() -> CudaDrivers.choose(List.of(noCuda, provider("other", "no device")), NOTHING_SET))
                .withMessage("no CUDA driver can be used: cuda: no library; other: no device;"
                        + " to run without a GPU, add cistern-simulated-gpu");
    }

    @Test
    void theDriverThatASettingNamesIsChosen() {
        assertThat(CudaDrivers.choose(List.of(cuda, simulated), driver("simulated")))
                .isEqualTo(new DriverChoice(simulated, true, "environment variable CISTERN_DRIVER"));
        assertThat(CudaDrivers.choose(List.of(cuda, simulated), driver("auto")))
                .isEqualTo(new DriverChoice(cuda, false, ""));
    }

    @Test
    void noOtherDriverTakesThePlaceOfOneThatWasAskedFor() {
        assertThatIllegalStateException()
                .isThrownBy(() -> CudaDrivers.choose(List.of(noCuda, simulated), driver("cuda")))
                .withMessage("environment variable CISTERN_DRIVER: the driver cuda can't be used: no library");
    }

    @Test
    void noOtherDriverTakesThePlaceOfOneThatWasSetUpWrongly() {
        when(noCuda.misconfiguredBecause()).thenReturn(Optional.of("no library"));

        assertThatIllegalStateException()
                .isThrownBy(() -> CudaDrivers.choose(List.of(noCuda, simulated), NOTHING_SET))
                .withMessage("the driver cuda can't be used: no library;"
                        + " to run without a GPU, set cistern.driver=simulated");
        assertThat(CudaDrivers.choose(List.of(noCuda, simulated), driver("simulated"))
                        .provider())
                .isSameAs(simulated);
    }

    @Test
    void aDriverThatThereIsNotIsToldWithWhoNamedIt() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CudaDrivers.choose(List.of(cuda), driver("cudda")))
                .withMessageStartingWith(
                        "environment variable CISTERN_DRIVER: there is no driver 'cudda'; valid are auto");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CudaDrivers.choose(List.of(cuda), driver("simulated")))
                .withMessageContaining("add cistern-simulated-gpu to the class path");
    }

    @Test
    void aClassWithoutItsServiceFileIsToldWithTheCure() {
        assertThatIllegalStateException()
                .isThrownBy(() -> CudaDrivers.choose(List.of(simulated), NOTHING_SET))
                .withMessageContaining("META-INF/services/io.cistern.cuda.CudaDriverProvider does not name")
                .withMessageContaining("ServicesResourceTransformer");
        assertThat(CudaDrivers.choose(List.of(simulated), driver("simulated")).provider())
                .isSameAs(simulated);
    }

    @Test
    void providersComeByPriority() {
        assertThat(CudaDrivers.providers())
                .isSortedAccordingTo((a, b) -> Integer.compare(b.priority(), a.priority()))
                .extracting(CudaDriverProvider::name)
                .contains("cuda");
    }

    private static Settings driver(String name) {
        return new Settings(Map.of(), Map.of("CISTERN_DRIVER", name));
    }

    private static CudaDriverProvider provider(String name, String reason) {
        CudaDriverProvider provider = mock(CudaDriverProvider.class);
        when(provider.name()).thenReturn(name);
        when(provider.unavailableBecause()).thenReturn(Optional.ofNullable(reason));
        when(provider.misconfiguredBecause()).thenReturn(Optional.empty());
        return provider;
    }
}
