/// Java programs in JVMs of their own, for tests.
package io.cistern.jvm;
