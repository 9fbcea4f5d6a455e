package io.cistern.spring;

import io.cistern.errors.ConfigurationException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/// Explains an application that did not start because of a setting or without a driver, instead of a stack trace
/// through all beans.
final class WrongSettingAnalyzer extends AbstractFailureAnalyzer<ConfigurationException> {
    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, ConfigurationException cause) {
        return new FailureAnalysis(
                cause.getMessage(),
                "Correct the setting in application.properties, the environment or the command line, or install what is"
                        + " missing.",
                cause);
    }
}
