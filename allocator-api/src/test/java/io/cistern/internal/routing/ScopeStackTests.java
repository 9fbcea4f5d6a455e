package io.cistern.internal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.spi.DeviceAllocator;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// The innermost choice that applies to a device and a stream serves.
final class ScopeStackTests {
    private static final long STREAM = 0x1000;
    private static final long OTHER = 0x2000;

    private final Router router = new Router();
    private final Route outer = route("outer");
    private final Route inner = route("inner");

    private Route route(String name) {
        DeviceAllocator none = new DeviceAllocator() {
            @Override
            public long allocate(long byteSize, int device, long stream) {
                return 0;
            }

            @Override
            public void free(long address, long byteSize, int device, long stream) {}
        };
        return router.routes().open(name, 0, none, null, () -> {});
    }

    private static ScopeStack stack(@Nullable ScopeStack outer, OptionalLong stream, @Nullable Route... routes) {
        return new ScopeStack(outer, routes, stream);
    }

    @Test
    void theInnermostChoiceForADeviceServes() {
        ScopeStack first = stack(null, OptionalLong.empty(), outer, outer, null);
        ScopeStack second = stack(first, OptionalLong.empty(), inner, null, null);
        assertThat(second.route(0, STREAM)).isSameAs(inner);
        assertThat(second.route(1, STREAM)).isSameAs(outer);
        assertThat(second.route(2, STREAM)).isNull();
        assertThat(first.route(0, STREAM)).isSameAs(outer);
    }

    @Test
    void aChoiceForOneStreamLeavesOthersToTheOuterOnes() {
        ScopeStack first = stack(null, OptionalLong.empty(), outer, null);
        ScopeStack second = stack(first, OptionalLong.of(STREAM), inner, inner);
        ScopeStack third = stack(second, OptionalLong.empty(), null, null);
        for (ScopeStack scopes : new ScopeStack[] {second, third}) {
            assertThat(scopes.route(0, STREAM)).isSameAs(inner);
            assertThat(scopes.route(0, OTHER)).isSameAs(outer);
            assertThat(scopes.route(1, STREAM)).isSameAs(inner);
            assertThat(scopes.route(1, OTHER)).isNull();
        }
    }

    @Test
    void aDeviceThatIsNotThereIsRefused() {
        ScopeStack all = stack(null, OptionalLong.empty(), outer);
        ScopeStack one = stack(all, OptionalLong.of(STREAM), inner);
        for (ScopeStack scopes : new ScopeStack[] {all, one}) {
            assertThatThrownBy(() -> scopes.route(1, STREAM))
                    .isInstanceOf(IndexOutOfBoundsException.class)
                    .hasMessageContaining("1");
        }
    }

    @Test
    void theLimitIsThatOfTheChoiceThatServes() {
        LimitHandle limit = LimitHandle.of("scope", 100, null);
        ScopeStack limited =
                new ScopeStack(null, new Route[] {outer, null}, OptionalLong.of(STREAM), limit, () -> {}, () -> {});
        assertThat(limited.limit(0, STREAM)).isSameAs(limit);
        assertThat(limited.limit(0, OTHER)).isNull();
        assertThat(limited.limit(1, STREAM)).isNull();
        assertThat(stack(limited, OptionalLong.empty(), inner, null).limit(0, STREAM))
                .isNull();
    }

    @Test
    void whatIsCarriedKeepsAllChoicesAndOnlyTheLastOneEnds() {
        StringBuilder told = new StringBuilder();
        ScopeStack first = new ScopeStack(
                null,
                new Route[] {outer},
                OptionalLong.empty(),
                null,
                () -> told.append("e1 "),
                () -> told.append("c1 "));
        ScopeStack second = new ScopeStack(
                first,
                new Route[] {inner},
                OptionalLong.empty(),
                null,
                () -> told.append("e2 "),
                () -> told.append("c2 "));
        second.carried();
        second.ended();
        assertThat(told).hasToString("c2 c1 e2 ");
    }

    @Test
    void aStackIsCalledAfterItsFirstRoute() {
        assertThat(stack(null, OptionalLong.empty(), null, inner)).hasToString(inner.toString());
        assertThat(stack(null, OptionalLong.empty(), (Route) null)).hasToString("none");
    }
}
