package io.cistern.spring;

import io.cistern.DeviceMemory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.InstantiationAwareBeanPostProcessor;

/// Publishes an application's settings before any bean of device memory is created, including the
/// application's own, and warns of the settings that such a bean ignores.
final class SettingsFirst implements InstantiationAwareBeanPostProcessor {
    private final ObjectProvider<ContextSettings> settings;

    SettingsFirst(ObjectProvider<ContextSettings> settings) {
        this.settings = settings;
    }

    @Override
    public @Nullable Object postProcessBeforeInstantiation(Class<?> beanClass, String beanName) {
        if (beanClass.equals(DeviceMemory.class)) {
            settings.getObject().putInForce();
        }
        return null;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof DeviceMemory memory) {
            settings.getObject().compareWith(memory, beanName);
        }
        return bean;
    }
}
