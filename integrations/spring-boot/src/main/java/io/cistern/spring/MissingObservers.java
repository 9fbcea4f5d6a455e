package io.cistern.spring;

import java.lang.System.Logger.Level;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.SpringBootVersion;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;

/// Logs what an application lacks for meters or for the health check of device memory.
final class MissingObservers implements SmartInitializingSingleton {
    private static final String REGISTRY = "io.micrometer.core.instrument.MeterRegistry";
    private static final String METRICS = "io.cistern.micrometer.DeviceMemoryMetrics";
    private static final String HEALTH = "org.springframework.boot.health.contributor.HealthIndicator";
    private static final String FORMER_HEALTH = "org.springframework.boot.actuate.health.HealthIndicator";
    private static final String STARTER = "; spring-boot-starter-actuator provides it";

    private final ConfigurableListableBeanFactory beans;
    private final Environment environment;

    MissingObservers(ConfigurableListableBeanFactory beans, Environment environment) {
        this.beans = beans;
        this.environment = environment;
    }

    @Override
    public void afterSingletonsInstantiated() {
        log("no meters of device memory: ", whyNoMeters());
        log("no health check of device memory: ", whyNoHealth());
    }

    private static void log(String what, String why) {
        if (!why.isEmpty()) {
            System.getLogger(CisternAutoConfiguration.class.getName()).log(Level.INFO, what + why);
        }
    }

    private String whyNoMeters() {
        if (!isPresent(REGISTRY)) {
            return "Micrometer is not on the class path" + STARTER;
        }
        if (!isPresent(METRICS)) {
            return "cistern-micrometer is not on the class path";
        }
        Class<?> registry = ClassUtils.resolveClassName(REGISTRY, beans.getBeanClassLoader());
        return beans.getBeanNamesForType(registry, true, false).length == 0
                ? "the application has no MeterRegistry bean" + STARTER
                : "";
    }

    private String whyNoHealth() {
        if (isPresent(HEALTH) || isOff("defaults") || isOff("cistern")) {
            return "";
        }
        return isPresent(FORMER_HEALTH)
                ? "it needs the artifact spring-boot-health, which exists since Spring Boot 4.0; this is "
                        + SpringBootVersion.getVersion()
                : "spring-boot-health is not on the class path" + STARTER;
    }

    private boolean isOff(String health) {
        return !environment.getProperty("management.health." + health + ".enabled", Boolean.class, true);
    }

    private boolean isPresent(String className) {
        return ClassUtils.isPresent(className, beans.getBeanClassLoader());
    }
}
