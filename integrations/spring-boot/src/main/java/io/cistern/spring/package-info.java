/// Configures device memory in Spring Boot.
package io.cistern.spring;
