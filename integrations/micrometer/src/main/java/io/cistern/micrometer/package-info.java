/// Publishes device memory as meters of Micrometer.
package io.cistern.micrometer;
