/* It reads its request (JSON: mode, root, files) from descriptor 3 and writes its answer to descriptor 4: {"results":[{"value":...} | {"error":"..."}]},
 * in the order of the files. What configurations print goes to stderr. `mode` is how TypeScript is understood: bun, strip (node does), tsx (loaded by
 * --import), jiti, esbuild, none. */
#include "js_driver.h"

#define LINE(text) text "\n"

const char vx_js_driver[] = LINE("import fs from 'node:fs';") LINE("import path from 'node:path';") LINE("import module from 'node:module';")
	LINE("import {pathToFileURL, fileURLToPath} from 'node:url';") LINE("const req = JSON.parse(fs.readFileSync(3, 'utf8'));")
		LINE("process.stdout.write = process.stderr.write.bind(process.stderr);")
			LINE("for (const k of ['log', 'info', 'debug']) console[k] = console.error;")
	/* Our own package, whether it is installed or not. */
	LINE("const ours = ['@vzn/vx', '@vzn/vx/config'];") LINE("const identity = {defineProject: x => x, defineWorkspace: x => x};") LINE(
		"const source = 'export const defineProject = x => x; export const defineWorkspace = x => x;';")
		LINE("const dataUrl = 'data:text/javascript,' + encodeURIComponent(source);") LINE("if (globalThis.Bun) {") LINE(
			"  Bun.plugin({name: 'vx', setup(b) { for (const o of ours) b.module(o, () => ({loader: 'object', exports: identity})); }});")
			LINE("} else {") LINE("  const hook = `export const resolve = (s, c, next) => ${JSON.stringify(ours)}.includes(s)") LINE(
				"    ? {url: ${JSON.stringify(dataUrl)}, shortCircuit: true} : next(s, c);`;")
				LINE("  module.register('data:text/javascript,' + encodeURIComponent(hook));") LINE("  const load = module.Module._load;") LINE(
					"  module.Module._load = function (s, ...rest) { return ours.includes(s) ? identity : load.call(this, s, ...rest); };")
					LINE("}") LINE("const fromRoot = module.createRequire(path.join(req.root, 'package.json'));") LINE(
						"const installed = async name => import(pathToFileURL(fromRoot.resolve(name)).href);")
						LINE("let bring = async file => import(pathToFileURL(file).href);") LINE("if (req.mode === 'jiti') {") LINE(
							"  const j = await installed('jiti');") LINE("  const make = j.createJiti ?? j.default.createJiti ?? j.default;")
							LINE("  const virtual = Object.fromEntries(ours.map(o => [o, identity]));") LINE(
								"  const jiti = make(req.root + '/', {interopDefault: true, moduleCache: true, fsCache: false, virtualModules: virtual});")
								LINE("  bring = async file => jiti.import ? jiti.import(file) : jiti(file);") LINE("}") LINE(
									"if (req.mode === 'esbuild') {") LINE("  const e = await installed('esbuild');")
									LINE("  const build = e.build ?? e.default.build;") LINE(
										"  const plugin = {name: 'vx', setup(b) {")
										LINE("    b.onResolve({filter: /^@vzn\\/vx(\\/config)?$/}, a => ({path: a.path, namespace: 'vx'}));") LINE(
											"    b.onLoad({filter: /.*/, namespace: 'vx'}, () => ({contents: source}));")
											LINE("  }};") LINE("  bring = async file => {") LINE(
												"    const out = await build({entryPoints: [file], bundle: true, platform: 'node', format: 'esm', write: false, logLevel: 'silent',")
												LINE("      banner: {js: `import {createRequire as vxCreateRequire} from 'node:module'; const require = vxCreateRequire(${url});`},")
													LINE("      plugins: [plugin], define: {__filename: JSON.stringify(file), __dirname: JSON.stringify(path.dirname(file)),")
														LINE("      'import.meta.url': url, 'import.meta.dirname': JSON.stringify(path.dirname(file))}});")
															LINE("    return import('data:text/javascript,' + encodeURIComponent(out.outputFiles[0].text));")
																LINE("  };") LINE("}")
	/* Plain data only: what JSON would lose or change is refused, by its path. */
	LINE("const plain = (v, at, above) => {") LINE("  const refuse = what => { throw new Error(`${at || 'the configuration'} is ${what}, but must be plain JSON data`); };") LINE(
		"  if (v === null || typeof v === 'string' || typeof v === 'boolean') return v;")
		LINE("  if (typeof v === 'number') return Number.isFinite(v) ? v : refuse(String(v));") LINE(
			"  if (typeof v !== 'object') refuse(typeof v === 'undefined' ? 'undefined' : `a ${typeof v}`);") LINE("  if (above.includes(v)) refuse('part of a cycle');")
			LINE("  if (above.length > 100) refuse('nested deeper than 100 levels');") LINE("  const inside = [...above, v];") LINE(
				"  if (Array.isArray(v)) return v.map((x, i) => plain(x, `${at}[${i}]`, inside));") LINE("  const proto = Object.getPrototypeOf(v);")
				LINE("  if (proto !== null && Object.getPrototypeOf(proto) !== null) refuse(`an instance of ${v.constructor?.name || 'a class'}`);") LINE(
					"  if (Object.getOwnPropertySymbols(v).length) refuse('an object with a symbol as a key');") LINE("  const out = {};")
					LINE("  for (const k of Object.keys(v)) {") LINE("    if (v[k] === undefined) continue;") LINE(
						"    Object.defineProperty(out, k, {value: plain(v[k], at ? `${at}.${k}` : k, inside), enumerable: true, configurable: true, writable: true});")
						LINE("  }") LINE("  return out;") LINE("};") LINE("const one = async file => {") LINE("  try {") LINE(
							"    const m = await bring(file);")
							LINE("    let v = m && typeof m === 'object' && 'default' in m ? m.default : m;") LINE(
								"    if (v && typeof v === 'object' && v.__esModule && 'default' in v) v = v.default;")
								LINE("    if (typeof v === 'function') v = v();") LINE("    v = await v;") LINE(
									"    if (v === null || typeof v !== 'object') throw new Error('it must export an object as default');")
									LINE("    return {value: plain(v, '', [])};") LINE("  } catch (e) {") LINE(
										"    const text = e instanceof Error ? `${e.name === 'Error' ? '' : e.name + ': '}${e.message}` : String(e);")
										LINE("    return {error: text.split('\\n').map(s => s.trim()).filter(Boolean).slice(0, 3).join(' ').slice(0, 600)};")
											LINE("  }") LINE("};") LINE("const results = [];") LINE(
												"for (const f of req.files) results.push(await one(f));")
												LINE("const answer = Buffer.from(JSON.stringify({results}));")
													LINE("for (let n = 0; n < answer.length;) n += fs.writeSync(4, answer, n);")
														LINE("process.exit(0);");
