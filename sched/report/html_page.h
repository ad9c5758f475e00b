/* The fixed text of the page of --report=html, in the order it is written: head, (title), style,
 * (title), body, (data), script. */
#ifndef VX_SCHED_REPORT_HTML_PAGE_H
#define VX_SCHED_REPORT_HTML_PAGE_H

extern const char html_page_head[], html_page_style[], html_page_body[], html_page_script[];

#endif
