/// Device memory in Spring Boot.
package io.cistern.spring;
