package io.cistern.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.cistern.errors.ConfigurationException;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.core.io.support.SpringFactoriesLoader;
import org.springframework.core.io.support.SpringFactoriesLoader.FailureHandler;

/// Spring Boot finds the explanation of a wrong setting.
final class WrongSettingAnalyzerTests {
    @Test
    void aWrongSettingIsExplained() {
        ConfigurationException wrong = new ConfigurationException("cistern.limit: '8GB' is not a number of bytes");
        FailureHandler others = FailureHandler.handleMessage((_, _) -> {}); // some analyzers need beans
        assertThat(
                        SpringFactoriesLoader.forDefaultResourceLocation(
                                        getClass().getClassLoader())
                                .load(FailureAnalyzer.class, others)
                                .stream()
                                .map(each -> each.analyze(new IllegalStateException("no bean", wrong)))
                                .filter(Objects::nonNull)
                                .map(FailureAnalysis::getDescription))
                .containsExactly(wrong.getMessage());
    }

    private static FailureAnalysis analysis(ConfigurationException failure) {
        return Objects.requireNonNull(new WrongSettingAnalyzer().analyze(failure));
    }

    @Test
    void problemsComeInTheOrderOfTheirLines() {
        assertThat(analysis(new ConfigurationException("""
                                property cistern.check: 'on' is not one of off, checked
                                cistern.limit from class path resource [b.properties] - 1:15: '8GB' could mean
                                cistern.leaks from class path resource [a.properties] - 10:15: 'on' is not one
                                cistern.limt from class path resource [a.properties] - 9:14: there is no setting"""))
                        .getDescription()
                        .lines()
                        .map(line -> line.substring(0, line.indexOf(' '))))
                .containsExactly("cistern.limt", "cistern.leaks", "cistern.limit", "property");
    }

    @Test
    void theActionNamesWhatToInstallOnlyIfItIsMissing() {
        assertThat(analysis(new ConfigurationException("cistern.limit: '8GB' is not a number of bytes"))
                        .getAction())
                .isEqualTo("Correct the settings above.");
        assertThat(analysis(new ConfigurationException("no allocator is named 'async'; add cistern-async-allocator"))
                        .getAction())
                .isEqualTo("Correct the settings above, or add the artifact that they name.");
        assertThat(analysis(new ConfigurationException("no libcuda.so", new IllegalStateException()))
                        .getAction())
                .isEqualTo("Install the driver, or set cistern.driver=simulated to run without a GPU.");
    }
}
