/// The command line program `cistern`: replays allocation traces and shows what this machine can do.
@org.jspecify.annotations.NullMarked
@SuppressWarnings("requires-automatic") // JLine and pickle have module names only from their JARs.
module io.cistern.cli {
    requires static org.jspecify;
    requires com.fasterxml.jackson.core;
    requires com.fasterxml.jackson.jr.ob;
    requires info.picocli;
    requires io.cistern.api;
    requires io.cistern.buffers;
    requires io.cistern.cuda;
    requires io.cistern.observability;
    requires io.cistern.simulated;
    requires java.management;
    requires java.management.rmi;
    requires jdk.attach;
    requires me.tongfei.progressbar;
    requires org.jline.terminal;
    requires pickle;

    // picocli sets the fields that carry its annotations.
    opens io.cistern.cli to
            info.picocli;
    opens io.cistern.cli.common to
            info.picocli;
    opens io.cistern.cli.doctor to
            info.picocli;
    opens io.cistern.cli.fit to
            info.picocli;
    opens io.cistern.cli.imports to
            info.picocli;
    opens io.cistern.cli.replay to
            info.picocli;
    opens io.cistern.cli.top to
            info.picocli;
    opens io.cistern.cli.trace to
            info.picocli;

    uses io.cistern.spi.catalog.CatalogProvider;
}
