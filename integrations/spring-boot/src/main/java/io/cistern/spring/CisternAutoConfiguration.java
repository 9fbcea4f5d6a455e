package io.cistern.spring;

import io.cistern.DeviceMemory;
import io.cistern.cuda.CudaDriver;
import io.cistern.micrometer.DeviceMemoryMetrics;
import io.cistern.spi.AllocatorProvider;
import io.cistern.spi.SegmentSourceProvider;
import io.cistern.spi.catalog.Catalog;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Duration;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.Environment;

/// Makes [DeviceMemory] a bean of a Spring Boot application, with its health for Actuator and its meters for
/// Micrometer where those are present.
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
/// | `DeviceMemoryMetrics` | with `cistern-micrometer` and Micrometer |
///
/// **Device memory.** It is the [process's own][DeviceMemory#system], which stays open when the application
/// ends. If the application has a [CudaDriver] bean, it is one of the application's own on that driver,
/// closed with it; beans of [AllocatorProvider] and [SegmentSourceProvider] are then known beside those that
/// are found.
///
/// **Properties.** All of Cistern's settings can stand among the application's properties, by their own keys;
/// they become system properties before device memory is opened, unless there is such a system property
/// already. What the process's own device memory needs has to be there before anybody else opens it. One
/// property is of this module: `cistern.metrics.slow-allocations`, a duration as `1ms`, adds the meter of [slow
/// allocations][DeviceMemoryMetrics#withSlowAllocations].
@AutoConfiguration
public final class CisternAutoConfiguration {
    /// For Spring.
    public CisternAutoConfiguration() {}

    /// Returns the process's own device memory.
    @Bean(destroyMethod = "")
    @ConditionalOnMissingBean({DeviceMemory.class, CudaDriver.class})
    DeviceMemory deviceMemory(ConfigurableEnvironment environment) {
        SpringSettings.apply(environment);
        return DeviceMemory.system();
    }

    /// Returns device memory on the application's driver.
    @Bean(destroyMethod = "close")
    @ConditionalOnBean(CudaDriver.class)
    @ConditionalOnMissingBean(DeviceMemory.class)
    DeviceMemory ownDeviceMemory(
            ConfigurableEnvironment environment,
            CudaDriver driver,
            ObjectProvider<AllocatorProvider> allocators,
            ObjectProvider<SegmentSourceProvider> sources) {
        SpringSettings.apply(environment);
        return DeviceMemory.builder(driver)
                .catalog(Catalog.discover(
                        allocators.orderedStream().toList(),
                        sources.orderedStream().toList()))
                .open();
    }

    /// Meters, where Micrometer is present.
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({MeterBinder.class, DeviceMemoryMetrics.class})
    static final class Metrics {
        @Bean
        @ConditionalOnMissingBean
        DeviceMemoryMetrics deviceMemoryMetrics(DeviceMemory memory, Environment environment) {
            Duration slow = environment.getProperty(SpringSettings.SLOW_ALLOCATIONS, Duration.class);
            return slow == null
                    ? DeviceMemoryMetrics.of(memory)
                    : DeviceMemoryMetrics.withSlowAllocations(memory, slow);
        }
    }

    /// Health, where Actuator's is present.
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
