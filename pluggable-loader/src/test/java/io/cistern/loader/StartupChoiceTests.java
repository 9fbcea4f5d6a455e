package io.cistern.loader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cistern.cuda.settings.Settings;
import io.cistern.errors.ConfigurationException;
import io.cistern.spi.AllocatorContext;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.Availability;
import io.cistern.spi.DeviceAllocator;
import io.cistern.spi.DeviceEnvironment;
import io.cistern.spi.SegmentSource;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.cistern.spi.catalog.Catalog.Choice;
import io.cistern.spi.catalog.Catalog.Kind;
import io.cistern.spi.options.AllocatorSpec;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import org.junit.jupiter.api.Test;

class StartupChoiceTests {
    private static final String HOW = "; name one with -Dcistern.allocator=NAME or CISTERN_ALLOCATOR=NAME";
    private static final DeviceEnvironment DEVICES = new NoDevices();

    /// Knows one segment source.
    private static final Catalog CATALOG = Catalog.of(List.of(), List.of(new FixedSource()));

    private final List<DiscoveredProvider<AllocatorProvider>> found = new ArrayList<>();
    private final Map<String, String> properties = new HashMap<>();
    private final Map<String, String> variables = new HashMap<>();

    @Test
    void thePropertyComesBeforeTheVariable() {
        add("caching", 30);
        add("async", 20);
        add("direct", 10);
        properties.put("cistern.allocator", "direct:a=1");
        variables.put("CISTERN_ALLOCATOR", "async");

        Choice choice = choose();

        assertThat(choice.spec().text()).isEqualTo("direct:a=1");
        assertThat(choice.spec().options()).isEqualTo(Map.of("a", List.of("1")));
        assertThat(choice.reason()).isEqualTo("property cistern.allocator");
    }

    @Test
    void theVariableComesBeforeThePriorities() {
        add("caching", 30);
        add("async", 20);
        variables.put("CISTERN_ALLOCATOR", "async");

        Choice choice = choose();

        assertThat(choice.spec().name()).isEqualTo("async");
        assertThat(choice.reason()).isEqualTo("environment variable CISTERN_ALLOCATOR");
    }

    @Test
    void withoutANameTheHighestPriorityOfThoseAvailableIsCurrent() {
        add("direct", 10);
        add("caching", 30, () -> Availability.no("no virtual memory"));
        add("async", 20);

        Choice choice = choose();

        assertThat(choice.spec().name()).isEqualTo("async");
        assertThat(choice.reason()).isEqualTo("highest priority of those available");
    }

    @Test
    void aBlankSettingCountsAsNotSet() {
        add("direct", 10);
        properties.put("cistern.allocator", " ");
        variables.put("CISTERN_ALLOCATOR", "");

        assertThat(choose().reason()).isEqualTo("highest priority of those available");
    }

    @Test
    void priorityZeroIsByNameOnly() {
        add("plugin", 0);

        assertRefused("no allocator can be current: none with a priority above 0 was found" + HOW);

        properties.put("cistern.allocator", "plugin");
        assertThat(choose().spec().name()).isEqualTo("plugin");
    }

    @Test
    void anUnknownNameIsAnErrorAndNotTheDefault() {
        add("caching", 30);
        add("direct", 10);
        properties.put("cistern.allocator", "cacing");

        assertRefused(
                "property cistern.allocator: no allocator is named 'cacing'; known, nearest first: caching, direct");
    }

    @Test
    void aSpecThatIsNoneIsAnErrorAndNotTheDefault() {
        add("caching", 30);
        variables.put("CISTERN_ALLOCATOR", "caching:page");

        assertRefused(
                "environment variable CISTERN_ALLOCATOR: spec 'caching:page': '=' is expected after key 'page' at the"
                        + " end; a spec is NAME or NAME:key=value,key=[a,b],key=\"quoted\"");
    }

    @Test
    void aNamedOneThatCannotRunIsAnErrorAndNotTheDefault() {
        add("caching", 30);
        add("async", 20, () -> Availability.no("device 0 has no memory pools"));
        variables.put("CISTERN_ALLOCATOR", "async");

        assertRefused(
                "environment variable CISTERN_ALLOCATOR: allocator 'async' can't run here: device 0 has no memory pools");
    }

    @Test
    void availabilityThatThrowsOrAnswersNullIsANoWithItsReason() {
        add("throws", 50, () -> {
            throw new IllegalStateException("oops");
        });
        add("lacks", 45, () -> {
            throw new NoClassDefFoundError("lib/Base");
        });
        add("null", 40, () -> null);

        assertRefused("no allocator can be current:"
                + " 'lacks' can't run here (test.lacks of /lacks.jar fails in availability(): java.lang.NoClassDefFoundError: lib/Base),"
                + " 'null' can't run here (test.null of /null.jar returns null from availability()),"
                + " 'throws' can't run here (test.throws of /throws.jar fails in availability(): java.lang.IllegalStateException: oops)"
                + HOW);

        add("direct", 10);
        assertThat(choose().spec().name()).isEqualTo("direct");
    }

    @Test
    void twoOfTheHighestPriorityAreAnErrorThatNamesBoth() {
        add("mine", 30);
        add("caching", 30);
        add("direct", 10);

        assertRefused("no allocator can be current: priority 30, the highest of those available, is claimed by"
                + " 'caching' of /caching.jar and 'mine' of /mine.jar" + HOW);
    }

    @Test
    void twoOfOnePriorityBelowTheHighestDoNotMatter() {
        add("a", 10);
        add("b", 10);
        add("caching", 30);

        assertThat(choose().spec().name()).isEqualTo("caching");
    }

    @Test
    void brokenOnesAreLeftOutAndCounted() {
        found.add(DiscoveredProvider.broken(
                Kind.ALLOCATOR, "test.Bad", "/bad.jar", Optional.empty(), 0, "fails to load: it"));
        add("twice", 90);
        add("twice", 90);
        add("direct", 10);

        Choice choice = choose();

        assertThat(choice.spec().name()).isEqualTo("direct");
        assertThat(choice.reason())
                .isEqualTo("highest priority of those available; left out, since they can't be used: 3");
    }

    @Test
    void aBrokenOneThatWouldBeCurrentIsWarnedOf() {
        add("twice", 90);
        add("twice", 90);
        add("direct", 10);
        List<String> warnings = new ArrayList<>();
        Logger logger = Logger.getLogger(StartupChoice.class.getName());
        logger.setFilter(message -> {
            warnings.add(new SimpleFormatter().formatMessage(message));
            return false;
        });
        choose();
        properties.put("cistern.allocator", "direct");
        choose();
        logger.setFilter(null);

        assertThat(warnings)
                .singleElement()
                .asString()
                .startsWith(
                        "allocator 'direct' is current, since 'twice' can't be used: test.twice of /twice-2.jar shares");
    }

    @Test
    void aNamedOneThatIsBrokenIsAnErrorAndNotTheDefault() {
        found.add(DiscoveredProvider.broken(Kind.ALLOCATOR, "test.Bad", "/bad.jar", Optional.of("bad"), 0, "is bad"));
        add("direct", 10);
        properties.put("cistern.allocator", "bad");

        assertRefused("property cistern.allocator: allocator 'bad' can't be used: test.Bad of /bad.jar is bad");
    }

    @Test
    void aDeviceHasItsOwn() {
        add("caching", 30);
        add("async", 20);
        add("direct", 10);
        properties.put("cistern.device.1.allocator", "direct");
        variables.put("CISTERN_ALLOCATOR", "async");
        StartupChoice choice = startup();

        assertThat(choice.choose(DEVICES, 0, CATALOG).spec().name()).isEqualTo("async");
        assertThat(choice.choose(DEVICES, 1, CATALOG).spec().name()).isEqualTo("direct");
        assertThat(choice.choose(DEVICES, 1, CATALOG).reason()).isEqualTo("property cistern.device.1.allocator");
    }

    @Test
    void aSegmentSourceIsAnAllocatorToo() {
        add("caching", 30);
        properties.put("cistern.allocator", "shelf:location=host");

        AllocatorSpec spec = choose().spec();

        assertThat(spec.name()).isEqualTo("caching");
        assertThat(spec.options()).isEqualTo(Map.of("source", List.of("shelf:location=host")));
    }

    @Test
    void aKeyThatIsNoSettingIsAnErrorThatNamesTheNearest() {
        add("direct", 10);
        properties.put("cistern.alocator", "direct");

        assertRefused("property cistern.alocator: there is no setting 'cistern.alocator'; known, nearest first:"
                + " cistern.allocator, cistern.leaks, cistern.limit, …");
    }

    private void add(String name, int priority) {
        add(name, priority, Availability::yes);
    }

    private void add(String name, int priority, Supplier<Availability> availability) {
        String origin = "/" + name + (found.stream().anyMatch(one -> one.name().equals(name)) ? "-2.jar" : ".jar");
        found.add(DiscoveredProvider.sound(
                Service.ALLOCATORS, "test." + name, origin, name, priority, new Fixed(name, availability)));
    }

    private Choice choose() {
        return startup().choose(DEVICES, CATALOG);
    }

    private StartupChoice startup() {
        Settings settings = new Settings(properties, variables);
        return new StartupChoice(new Providers<>("allocator", found), settings);
    }

    private void assertRefused(String message) {
        assertThatThrownBy(this::choose)
                .isInstanceOf(ConfigurationException.class)
                .hasMessage(message);
    }

    private record Fixed(String name, Supplier<Availability> answer) implements AllocatorProvider {
        @Override
        public int spiVersion() {
            return SPI_VERSION;
        }

        @Override
        public Availability availability(DeviceEnvironment environment) {
            return answer.get();
        }

        @Override
        public DeviceAllocator open(AllocatorContext context) {
            throw new UnsupportedOperationException("a choice opens nothing");
        }
    }

    private record FixedSource() implements SegmentSourceProvider {
        @Override
        public int spiVersion() {
            return AllocatorProvider.SPI_VERSION;
        }

        @Override
        public String name() {
            return "shelf";
        }

        @Override
        public SegmentSource open(AllocatorContext context) {
            throw new UnsupportedOperationException("a choice opens nothing");
        }
    }
}
