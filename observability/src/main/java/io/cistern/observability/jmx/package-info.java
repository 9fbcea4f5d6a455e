/// Shows device memory as a bean of Java Management Extensions.
package io.cistern.observability.jmx;
