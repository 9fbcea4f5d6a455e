package io.cistern.jvm;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// What is logged under a name while a test runs, instead of where it would go.
public final class LogOf extends Handler implements BeforeEachCallback, AfterEachCallback {
    private final Logger logger;
    private final List<String> messages = new CopyOnWriteArrayList<>();

    public LogOf(String name) {
        logger = Logger.getLogger(name);
    }

    /// So far, as people read them.
    public List<String> messages() {
        return messages;
    }

    @Override
    public void beforeEach(ExtensionContext test) {
        logger.addHandler(this);
        logger.setUseParentHandlers(false);
    }

    @Override
    public void afterEach(ExtensionContext test) {
        logger.removeHandler(this);
        logger.setUseParentHandlers(true);
    }

    @Override
    public void publish(LogRecord message) {
        messages.add(new SimpleFormatter().formatMessage(message));
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
