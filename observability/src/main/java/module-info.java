/// What happens to device memory, for tools: Java Flight Recorder ([io.cistern.observability.jfr]) and JMX
/// ([io.cistern.observability.jmx]).
@org.jspecify.annotations.NullMarked
module io.cistern.observability {
    requires static org.jspecify;
    requires transitive io.cistern.api;
    requires jdk.jfr;
    requires transitive java.management;

    exports io.cistern.observability.jfr;
    exports io.cistern.observability.jmx;
}
