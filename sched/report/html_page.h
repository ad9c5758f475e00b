/* The page of --report=html: markup, style and script, embedded from html_page.html. @TITLE@ and
 * @DATA@ stand where a run's title (as HTML text) and data (as a script's value) go. Nothing in it
 * is fetched: the policy in its head forbids it. */
#ifndef VX_HTML_PAGE_H
#define VX_HTML_PAGE_H

extern const char vx_html_page[];

#endif
