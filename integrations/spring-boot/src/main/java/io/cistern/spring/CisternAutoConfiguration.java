package io.cistern.spring;

import io.cistern.DeviceMemory;
import io.cistern.ModuleSupport;
import io.cistern.cuda.CudaDriver;
import io.cistern.errors.ConfigurationException;
import io.cistern.micrometer.DeviceMemoryMetrics;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.AnnotatedBeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.Environment;

/// Makes [DeviceMemory] a bean of a Spring Boot application. With Actuator, it also adds a health
/// check; with Micrometer, meters.
///
/// ```properties
/// cistern.allocator=caching:fit=tight
/// cistern.limit=8GiB
/// cistern.observe=jfr,jmx
/// ```
///
/// | bean | when |
/// |---|---|
/// | [DeviceMemory] | always, unless the application has one |
/// | `cisternHealthIndicator` | with `spring-boot-health`, unless `management.health.cistern.enabled` is `false` |
/// | `DeviceMemoryMetrics` | with Micrometer |
///
/// Health and meters come with `spring-boot-starter-actuator`; the health check needs Spring Boot 4. At startup, the
/// log says what is missing for them.
///
/// **Device memory.** The bean is the [process's own][DeviceMemory#system], which stays open when the
/// application ends. If the application has a [CudaDriver] bean, the [DeviceMemory] bean is new device
/// memory on that driver and closes with the application. That device memory uses beans of
/// [AllocatorProvider] and [SegmentSourceProvider] in addition to discovered providers.
///
/// **Live memory** moves only while the application pauses its work on the device. This module can't pause
/// that work, so it registers no pause. If your application can, register a pause with the bean's
/// [listeners][DeviceMemory#listeners].
///
/// **Properties.** The application's properties may contain any of Cistern's settings under its own
/// key. If several of Spring's property sources have a setting, Spring's order decides. The settings
/// become system properties before the first bean of device memory is created, even if the application
/// defines that bean, and are withdrawn when the application's context closes. An invalid setting stops
/// the application, whether or not it would have an effect. This module has one property of its own:
/// `cistern.metrics.slow-allocations`, a duration such as `1ms`, adds the meter of
/// [slow allocations][DeviceMemoryMetrics#withSlowAllocations].
///
/// **Several contexts.** While several contexts are open, the settings of the context that last created
/// device memory apply. Device memory keeps the settings that it was opened with, so the process's own
/// device memory follows the first context that uses it; a warning names the settings that differ in
/// later contexts. Contexts whose own bean methods open device memory must not start at the same time.
@AutoConfiguration
public final class CisternAutoConfiguration {
    /// Creates the configuration, for Spring.
    public CisternAutoConfiguration() {}

    /// Returns the application's settings, which are created before the first bean of device memory.
    @Bean(destroyMethod = "close")
    @Lazy
    ContextSettings cisternSettings(
            ConfigurableEnvironment environment,
            ConfigurableListableBeanFactory beans,
            ObjectProvider<AllocatorProvider> allocators,
            ObjectProvider<SegmentSourceProvider> sources) {
        if (!Stream.of(beans.getBeanNamesForType(DeviceMemory.class, true, false))
                .allMatch(name -> isOurs(beans, name))) {
            return ContextSettings.open(environment, false, _ -> List.of()); // only the bean knows its allocators
        }
        boolean opens = beans.getBeanNamesForType(CudaDriver.class, true, false).length == 0;
        return ContextSettings.open(
                environment, opens, spec -> ModuleSupport.problemsOfSpec(spec, discovered(allocators, sources)));
    }

    private static boolean isOurs(ConfigurableListableBeanFactory beans, String name) {
        return beans.containsBeanDefinition(name)
                && beans.getBeanDefinition(name) instanceof AnnotatedBeanDefinition bean
                && bean.getFactoryMethodMetadata() != null
                && bean.getFactoryMethodMetadata()
                        .getDeclaringClassName()
                        .equals(CisternAutoConfiguration.class.getName());
    }

    /// Publishes the settings before the first bean of device memory is created.
    @Bean
    static SettingsFirst cisternSettingsFirst(ObjectProvider<ContextSettings> settings) {
        return new SettingsFirst(settings);
    }

    private static Catalog discovered(
            ObjectProvider<AllocatorProvider> allocators, ObjectProvider<SegmentSourceProvider> sources) {
        return Catalog.discover(
                allocators.orderedStream().toList(), sources.orderedStream().toList());
    }

    /// Logs what an application lacks for meters and health.
    @Bean
    MissingObservers cisternMissingObservers(ConfigurableListableBeanFactory beans, Environment environment) {
        return new MissingObservers(beans, environment);
    }

    /// Returns the process's own device memory.
    @Bean(destroyMethod = "")
    @ConditionalOnMissingBean({DeviceMemory.class, CudaDriver.class})
    DeviceMemory deviceMemory(ContextSettings settings) {
        return checked(settings.inForce(CisternAutoConfiguration::system));
    }

    /// Without a driver, the application should not start; the failure is explained like an invalid
    /// setting.
    private static DeviceMemory system() {
        try {
            return DeviceMemory.system();
        } catch (IllegalStateException e) {
            throw new ConfigurationException(String.valueOf(e.getMessage()), e);
        }
    }

    /// Opens the current allocator now: an application whose allocator can't be opened should not start.
    private static DeviceMemory checked(DeviceMemory memory) {
        ModuleSupport.reportLeaksBy(SpringApplication.getShutdownHandlers()::add); // after contexts have closed
        if (memory.driver().devices().count() > 0) {
            memory.current(0);
        }
        return memory;
    }

    /// Returns device memory on the application's driver.
    @Bean(destroyMethod = "close")
    @ConditionalOnBean(CudaDriver.class)
    @ConditionalOnMissingBean(DeviceMemory.class)
    DeviceMemory ownDeviceMemory(
            CudaDriver driver,
            ObjectProvider<AllocatorProvider> allocators,
            ObjectProvider<SegmentSourceProvider> sources,
            ContextSettings settings) {
        List<AllocatorProvider> ofAllocators = allocators.orderedStream().toList();
        List<SegmentSourceProvider> ofSources = sources.orderedStream().toList();
        return checked(settings.inForce(() -> DeviceMemory.builder(driver)
                .catalog(Catalog.discover(ofAllocators, ofSources))
                .open()));
    }

    /// Adds meters if Micrometer is present.
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({MeterBinder.class, DeviceMemoryMetrics.class})
    static final class Metrics {
        @Bean
        @ConditionalOnMissingBean
        DeviceMemoryMetrics deviceMemoryMetrics(DeviceMemory memory, ContextSettings settings) {
            Duration slow = settings.slowAllocations();
            return slow == null
                    ? DeviceMemoryMetrics.of(memory)
                    : DeviceMemoryMetrics.withSlowAllocations(memory, slow);
        }
    }

    /// Adds the health check if Actuator's health support is present.
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
    static final class Healths {
        @Bean
        @ConditionalOnMissingBean(name = "cisternHealthIndicator")
        @ConditionalOnEnabledHealthIndicator("cistern")
        HealthIndicator cisternHealthIndicator(DeviceMemory memory) {
            return new DeviceMemoryHealth(memory);
        }
    }
}
