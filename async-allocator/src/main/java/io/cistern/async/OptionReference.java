package io.cistern.async;

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
        StringBuilder page =
                new StringBuilder(HEAD).append("| key | legal | without it | meaning |\n|---|---|---|---|\n");
        for (AsyncOption<?> option : AsyncOption.ALL) {
            page.append("| `").append(option.key()).append("` | ").append(option.legal());
            page.append(" | ").append(option.usual()).append(" | ").append(option.meaning());
            page.append(" |\n");
        }
        return page.toString();
    }
}
