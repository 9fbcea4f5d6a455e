package io.cistern.testkit;

import io.cistern.Registration;
import io.cistern.hazards.StreamHazard;
import io.cistern.hazards.StreamHazards;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.TestInstanceFactoryContext;
import org.junit.jupiter.api.extension.TestInstancePreConstructCallback;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/// Fails each test of the annotated class that uses device memory without the necessary stream order.
///
/// It watches each device memory that is opened during the test, or while the test object is constructed.
/// [StreamHazards] explains which uses it finds. The annotation sets the system property `cistern.check`
/// during the test, and locks [Resources#SYSTEM_PROPERTIES] for that. If JUnit runs tests in parallel, a
/// test without this lock may run at the same time, and its device memory is watched, too.
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ResourceLock(Resources.SYSTEM_PROPERTIES)
@ExtendWith(NoStreamHazards.Watch.class)
public @interface NoStreamHazards {
    /// The JUnit extension that watches during each test.
    final class Watch implements TestInstancePreConstructCallback, AfterEachCallback {
        private static final String SETTING = "cistern.check";
        private static final Namespace NAMESPACE = Namespace.create(NoStreamHazards.class);

        /// Creates the extension; JUnit calls this.
        public Watch() {}

        private record Watched(Registration listener, List<StreamHazard> found) {}

        @Override
        public void preConstructTestInstance(TestInstanceFactoryContext factory, ExtensionContext context) {
            System.setProperty(SETTING, "streams");
            List<StreamHazard> found = new CopyOnWriteArrayList<>();
            context.getStore(NAMESPACE).put(Watched.class, new Watched(StreamHazards.onAnyHazard(found::add), found));
        }

        @Override
        public void afterEach(ExtensionContext context) {
            System.clearProperty(SETTING);
            Watched watched = context.getStore(NAMESPACE).get(Watched.class, Watched.class);
            watched.listener.close();
            if (!watched.found.isEmpty()) {
                throw new AssertionError("memory is used where no stream orders it: " + watched.found);
            }
        }
    }
}
