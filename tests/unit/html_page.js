// Runs the script of a page of --report=html in a document of nothing but stubs: it must not throw, and must show what there is.
// usage: node html_page.js PAGE TASKS SEARCH FOUND
"use strict";
const fs = require("fs"), assert = require("assert");
const [page, tasks, word, found] = process.argv.slice(2);
const source = fs.readFileSync(page, "utf8").match(/<script>([\s\S]*)<\/script>/)[1];

function element() {
	const e = { children: [], listeners: {}, style: {}, className: "", value: "", clientWidth: 1000, clientHeight: 300, scrollTop: 0 };
	Object.defineProperty(e, "textContent", { set: () => { e.children = []; } });
	e.appendChild = c => { e.children.push(c); return c; };
	e.append = () => {};
	e.addEventListener = (name, f) => { e.listeners[name] = f; };
	e.getBoundingClientRect = () => ({ left: 0, top: 0 });
	e.getContext = () => new Proxy({}, { get: (t, k) => k in t ? t[k] : (...a) => { drawn[k] = (drawn[k] || 0) + 1; }, set: (t, k, v) => { t[k] = v; return true; } });
	return e;
}
const drawn = {}, ids = {}, frames = [], windowListeners = {};
const $ = id => ids[id] || (ids[id] = element());
global.document = { getElementById: $, createElement: element, documentElement: {} };
global.getComputedStyle = () => ({ getPropertyValue: () => " #123456" });
global.requestAnimationFrame = f => frames.push(f);
global.window = { devicePixelRatio: 2, innerWidth: 1000, addEventListener: (n, f) => { windowListeners[n] = f; } };
(0, eval)(source);
const paint = () => { while (frames.length) frames.shift()(); };
paint();
assert.ok(drawn.fillRect > 0 && drawn.fillText > 0, "the timeline is empty");
assert.strictEqual($("rows").children.length, Math.min(Number(tasks), 200));
for (const h of $("heads").children) h.listeners.click();
const c = $("c");
c.listeners.mousemove({ clientX: 500, clientY: 40 });
c.listeners.wheel({ ctrlKey: true, deltaY: -1, clientX: 300, preventDefault() {} });
c.listeners.mousedown({ clientX: 300 });
c.listeners.mousemove({ clientX: 250, clientY: 40 });
windowListeners.mouseup();
windowListeners.keydown({ key: "-", target: null });
c.listeners.click({ clientX: 500, clientY: 40 });
$("q").value = word;
$("q").listeners.input();
paint();
assert.strictEqual($("rows").children.length, Number(found));
if ($("rows").children.length) $("rows").children[0].listeners.click();
$("all").listeners.click();
$("more").listeners.click();
paint();
