package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.FutureTask;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The region of a thread, on platform and virtual threads.
@SuppressWarnings("ReferenceEquality")
final class ScopeStacksTests {
    private final Router router = new Router();
    private final ScopeStacks scopes = router.scopes();
    private final ScopeStack first = new ScopeStack(null, new Route[1], OptionalLong.empty());
    private final ScopeStack second = new ScopeStack(first, new Route[1], OptionalLong.empty());

    private interface Work {
        void run() throws Exception;
    }

    private static void on(boolean virtual, Work work) throws Exception {
        FutureTask<Boolean> task = new FutureTask<>(() -> {
            work.run();
            return true;
        });
        (virtual ? Thread.ofVirtual() : Thread.ofPlatform()).start(task);
        task.get();
    }

    @ParameterizedTest(name = "on a virtual thread: {0}")
    @ValueSource(booleans = {false, true})
    void aThreadIsInTheRegionThatItWasPutInto(boolean virtual) throws Exception {
        on(virtual, () -> {
            assertThat(scopes.current()).isNull();
            scopes.set(first);
            assertThat(scopes.current()).isSameAs(first);
            ThreadCounters counters = router.counters();
            assertThat(scopes.current(counters)).isSameAs(first);
            assertThat(counters == null).isEqualTo(virtual);
            if (counters != null) {
                assertThat(counters.scopes()).isSameAs(first);
            }
            on(virtual, () -> assertThat(scopes.current()).as("another thread").isNull());
            scopes.set(second);
            assertThat(scopes.current()).isSameAs(second);
            scopes.set(null);
            assertThat(scopes.current()).isNull();
        });
    }

    @ParameterizedTest(name = "on a virtual thread: {0}")
    @ValueSource(booleans = {false, true})
    void codeRunsInARegionAndLeavesTheThreadWhereItWas(boolean virtual) throws Exception {
        on(virtual, () -> {
            scopes.set(first);
            String result = scopes.call(second, () -> {
                assertThat(scopes.current()).isSameAs(second);
                scopes.set(null);
                assertThat(scopes.current())
                        .as("outside, although it was inherited")
                        .isNull();
                scopes.set(first);
                assertThat(scopes.current()).isSameAs(first);
                return "done";
            });
            assertThat(result).isEqualTo("done");
            assertThat(scopes.current()).isSameAs(first);
            assertThatThrownBy(() -> scopes.call(second, () -> {
                        throw new IllegalStateException();
                    }))
                    .isInstanceOf(IllegalStateException.class);
            assertThat(scopes.current()).isSameAs(first);
            scopes.set(null);
            scopes.call(second, () -> "");
            assertThat(scopes.current()).isNull();
            assertThat(scopes.inherited()).isNull();
        });
    }

    @ParameterizedTest(name = "on a virtual thread: {0}")
    @ValueSource(booleans = {false, true})
    void eachMoveIsWatched(boolean virtual) throws Exception {
        List<@Nullable ScopeStack> seen = new ArrayList<>();
        scopes.watch(seen::add);
        on(virtual, () -> {
            scopes.set(first);
            scopes.call(second, () -> "");
            scopes.set(null);
        });
        assertThat(seen).containsExactly(first, second, first, null);
    }
}
