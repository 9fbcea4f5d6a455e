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

/// Fails each test of a class in which memory is used where no stream orders it.
///
/// Watches each device memory that the test opens, from the construction of the test's object on. [StreamHazards]
/// explains which uses it finds. Tests of other classes do not run at the same time, if JUnit runs tests in
/// parallel.
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ResourceLock(Resources.SYSTEM_PROPERTIES)
@ExtendWith(NoStreamHazards.Watch.class)
public @interface NoStreamHazards {
    /// Watches during each test; for JUnit.
    final class Watch implements TestInstancePreConstructCallback, AfterEachCallback {
        private static final String SETTING = "cistern.check";
        private static final Namespace NAMESPACE = Namespace.create(NoStreamHazards.class);

        /// For JUnit.
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
