/// Configures device memory in Spring Boot: [io.cistern.spring.CisternAutoConfiguration].
@org.jspecify.annotations.NullMarked
// Spring's libraries name their modules only in manifests.
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"})
module io.cistern.spring {
    requires static org.jspecify;
    requires static com.fasterxml.jackson.annotation; // named by the health classes
    requires static io.cistern.micrometer;
    requires static micrometer.core;
    requires static spring.boot.health;
    requires spring.beans;
    requires spring.boot;
    requires spring.context;
    requires spring.core;
    requires transitive io.cistern.api;
    requires transitive spring.boot.autoconfigure;

    exports io.cistern.spring;

    opens io.cistern.spring; // Spring creates the beans
}
