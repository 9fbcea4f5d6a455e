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
}
