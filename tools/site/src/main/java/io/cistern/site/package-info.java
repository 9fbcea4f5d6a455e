/// Makes a site of plain HTML files from the pages of the repository.
@NullMarked
package io.cistern.site;

import org.jspecify.annotations.NullMarked;
