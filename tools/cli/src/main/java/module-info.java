/// The command line program `cistern`: replays allocation traces and tells what this machine can do.
@org.jspecify.annotations.NullMarked
module io.cistern.cli {
    requires static org.jspecify;
    requires info.picocli;
    requires io.cistern.api;
    requires io.cistern.buffers;
    requires io.cistern.cuda;
    requires io.cistern.simulated;
    requires jdk.management;
    requires me.tongfei.progressbar;

    // picocli sets the fields that carry its annotations.
    opens io.cistern.cli to
            info.picocli;

    uses io.cistern.spi.catalog.CatalogProvider;
}
