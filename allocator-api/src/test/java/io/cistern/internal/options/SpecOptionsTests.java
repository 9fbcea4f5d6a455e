package io.cistern.internal.options;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.DeviceMemory;
import io.cistern.errors.ConfigurationException;
import io.cistern.simulated.SimulatedGpu;
import io.cistern.spi.options.AllocatorOptions;
import io.cistern.spi.options.AllocatorSpec;
import io.cistern.spi.options.SpecOption;
import java.util.List;
import java.util.Optional;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class SpecOptionsTests {
    @Test
    void readsEachOptionWithItsType() {
        SpecOptions options = options(
                "x:text=t,bytes=2MiB,number=-3,fraction=0.25,on=true,off=False,choice=blue,list=[a,b],one=a,empty=[]");

        assertThat(options.text("text")).contains("t");
        assertThat(options.bytes("bytes")).contains(2L << 20);
        assertThat(options.number("number", -5, 5)).contains(-3L);
        assertThat(options.fraction("fraction")).contains(0.25);
        assertThat(options.flag("on")).contains(true);
        assertThat(options.flag("off")).contains(false);
        assertThat(options.choice("choice", List.of("red", "blue"))).contains("blue");
        assertThat(options.list("list")).contains(List.of("a", "b"));
        assertThat(options.list("one")).contains(List.of("a"));
        assertThat(options.list("empty")).contains(List.of());
    }

    @Test
    void whatIsNotGivenIsEmpty() {
        SpecOptions options = options("x");

        assertThat(options.text("a")).isEmpty();
        assertThat(options.bytes("a")).isEmpty();
        assertThat(options.number("a", 0, 1)).isEmpty();
        assertThat(options.fraction("a")).isEmpty();
        assertThat(options.flag("a")).isEmpty();
        assertThat(options.choice("a", List.of("b"))).isEmpty();
        assertThat(options.list("a")).isEqualTo(Optional.empty());
    }

    @Test
    void boundsAreLegal() {
        assertThat(options("x:a=0,b=9").number("a", 0, 9)).contains(0L);
        assertThat(options("x:a=0,b=9").number("b", 0, 9)).contains(9L);
        assertThat(options("x:a=0").fraction("a")).contains(0.0);
        assertThat(options("x:a=1").fraction("a")).contains(1.0);
    }

    @Test
    void aValueOfAnotherTypeSaysWhatIsLegal() {
        assertRefused(
                () -> options("x:a=3GB").bytes("a"),
                "option 'a' of 'x': '3GB' could mean powers of 1000 or of 1024; write 3GiB (spec x:a=3GB)");
        assertRefused(
                () -> options("x:a=much").bytes("a"),
                "option 'a' of 'x': 'much' is not a number of bytes; write it like 1048576, 64k, 8g or "
                        + "512MiB, or as a share of the device like 0.5 or 50% (spec x:a=much)");
        assertRefused(
                () -> options("x:a=10").number("a", 0, 9),
                "option 'a' of 'x': '10' is not a whole number from 0 to 9 (spec x:a=10)");
        assertRefused(
                () -> options("x:a=few").number("a", 0, 9),
                "option 'a' of 'x': 'few' is not a whole number from 0 to 9 (spec x:a=few)");
        assertRefused(
                () -> options("x:a=1.1").fraction("a"),
                "option 'a' of 'x': '1.1' is not a fraction from 0 to 1 (spec x:a=1.1)");
        assertRefused(
                () -> options("x:a=NaN").fraction("a"),
                "option 'a' of 'x': 'NaN' is not a fraction from 0 to 1 (spec x:a=NaN)");
        assertRefused(
                () -> options("x:a=half").fraction("a"),
                "option 'a' of 'x': 'half' is not a fraction from 0 to 1 (spec x:a=half)");
        assertRefused(
                () -> options("x:a=yes").flag("a"),
                "option 'a' of 'x': 'yes' is neither true nor false (spec x:a=yes)");
        assertRefused(
                () -> options("x:a=blu").choice("a", List.of("red", "blue")),
                "option 'a' of 'x': 'blu' is not one of these, nearest first: blue, red (spec x:a=blu)");
        assertRefused(
                () -> options("x:a=[p,q]").text("a"),
                "option 'a' of 'x': takes one value, not the 2 of [p, q] (spec x:a=[p,q])");
        assertRefused(
                () -> options("x:a=[]").flag("a"), "option 'a' of 'x': takes one value, not the 0 of [] (spec x:a=[])");
    }

    @Test
    void anOptionNobodyAskedForNamesTheNearestThatWasAskedFor() {
        SpecOptions options = options("caching:pgae=2MiB");
        options.text("source");
        options.bytes("page");

        assertRefused(
                options::rejectUnread,
                "'caching' has no option 'pgae' (spec caching:pgae=2MiB); it takes, nearest first: page, source");
    }

    @Test
    void allUnknownOptionsAreNamed() {
        SpecOptions options = options("direct:a=1,b=2");

        assertRefused(options::rejectUnread, "'direct' has no options 'a', 'b' (spec direct:a=1,b=2); it takes none");
    }

    @Test
    void aDeclaredOptionThatTheProviderForgetsToReadIsItsMistake() {
        SpecOption<Long> slab =
                SpecOption.of("bump", "slab", "bytes", "2MiB", "size of a slab", AllocatorOptions::bytes);
        SpecOptions options = options("bump:slab=1MiB");
        assertRefused(
                () -> options.rejectUnread(() -> List.of(slab)),
                "'bump' declares the option 'slab', but did not read it when it was opened (spec bump:slab=1MiB)");
    }

    @Test
    void whatWasAskedForIsNotRejected() {
        SpecOptions options = options("x:a=1,b=[2]");
        options.number("a", 0, 9);
        options.list("b");
        options.flag("c");

        assertThatCode(options::rejectUnread).doesNotThrowAnyException();
    }

    private static SpecOptions options(String spec) {
        try (SimulatedGpu gpu = SimulatedGpu.builder().build();
                DeviceMemory memory = DeviceMemory.builder(gpu).open()) {
            return new SpecOptions(AllocatorSpec.parse(spec), memory.environment());
        }
    }

    private static void assertRefused(ThrowingCallable call, String message) {
        assertThatThrownBy(call).isInstanceOf(ConfigurationException.class).hasMessage(message);
    }
}
