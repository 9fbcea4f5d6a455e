package io.cistern.async;

import io.cistern.spi.options.SpecOption;

/// The reference page of the options, from their declarations.
final class OptionReference {
    private static final String HEAD = """
            # Options of `async`

            Made from `AsyncOption` by `OptionReferenceTest`; see there for how to make it anew. In a spec:
            `async:key=value,key=[a,b]`, in code `new AsyncSpec().with(AsyncOption.POOL, PoolChoice.DEFAULT).spec()`. The
            segment source `driver_pool` has the same ones, but for `per_stream`: `caching:source="driver_pool:location=host"`.
            A key that is not here, a value that is not legal, and two options that contradict each other are errors that
            say what is legal.

            """;

    private OptionReference() {}

    /// The page.
    static String markdown() {
        return HEAD + SpecOption.table(AsyncOption.ALL);
    }
}
