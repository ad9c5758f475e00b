/* The program that evaluates JS and TypeScript configurations, embedded from js_driver.mjs: one text
 * for `bun -e` and `node --input-type=module -e`. */
#ifndef VX_JS_DRIVER_H
#define VX_JS_DRIVER_H

extern const char vx_js_driver[];

#endif
