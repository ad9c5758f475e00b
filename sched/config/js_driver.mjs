// Evaluates configurations that are programs, as one text for `bun -e` and `node -e`.
//
// The request is read from descriptor 3 (JSON: mode, root, files), the answer is written to
// descriptor 4: {"results":[{"value":...} | {"error":"..."}], "read":{...}}, in the order of the
// files. What configurations print goes to stderr. `mode` is how TypeScript is understood: bun,
// strip (node does), tsx (loaded by --import), jiti, esbuild, none.
import fs from 'node:fs';
import path from 'node:path';
import module from 'node:module';
import {pathToFileURL, fileURLToPath} from 'node:url';
const req = JSON.parse(fs.readFileSync(3, 'utf8'));
process.stdout.write = process.stderr.write.bind(process.stderr);
for (const k of ['log', 'info', 'debug']) console[k] = console.error;
// Our own package, whether it is installed or not.
const ours = ['@vzn/vx', '@vzn/vx/config'];
const identity = {defineProject: x => x, defineWorkspace: x => x};
const source = 'export const defineProject = x => x; export const defineWorkspace = x => x;';
const dataUrl = 'data:text/javascript,' + encodeURIComponent(source);
import os from 'node:os';
// What the evaluation read, so that it can be kept while that is unchanged. In bun, modules
// cannot be watched: their imports are read statically.
const seen = {paths: new Set(), env: new Set(), allEnv: false, keep: true};
// Which configuration read what: modules lead to what they ask for. What code reads while it runs
// (`loose`) may have been read for any of them.
const edges = new Map(), loose = new Set(), loaded = new Set();
let asker;
const edge = (from, to) => { if (!edges.has(from)) edges.set(from, new Set()); edges.get(from).add(to); };
const asking = (from, act) => { const before = asker; asker = from; try { return act(); } finally { asker = before; } };
const note = p => {
  try { if (p instanceof URL) p = fileURLToPath(p); if (Buffer.isBuffer(p)) p = p.toString(); } catch { return; }
  if (typeof p !== 'string') return;
  p = path.resolve(p);
  seen.paths.add(p);
  if (asker) edge(asker, p); else loose.add(p);
};
const noteLoaded = f => { seen.paths.add(f); loaded.add(f); };
// answers from elsewhere cannot be compared next time
const lose = () => { seen.keep = false; };
const {statSync, readFileSync} = fs;
const stat = p => statSync(p, {throwIfNoEntry: false});
const up = function* (f) { for (let d = path.dirname(f); ; d = path.dirname(d)) { yield d; if (d === path.dirname(d)) return; } };
const there = p => { try { return stat(p) !== undefined; } catch { return false; } };
// What decides how a module is understood, and what its names lead to: the nearest package.json,
// and that none is nearer.
const noteScope = f => asking(f, () => { for (const d of up(f)) { note(path.join(d, 'package.json')); if (there(path.join(d, 'package.json'))) return; } });
const endings = ['.js', '.json', '.node', '.mjs', '.cjs', '.ts', '.mts', '.cts', '.tsx', '.jsx'];
const typescript = req.mode === 'tsx' || req.mode === 'bun';
// All that could have been found for a path. A file of exactly that name is what is taken.
const noteCandidates = base => {
  note(base);
  if (typescript) for (const e of ['ts', 'tsx']) note(base.replace(/jsx?$/, e));
  try { if (stat(base)?.isFile()) return; } catch { return; }
  for (const e of endings) { note(base + e); note(path.join(base, 'index' + e)); }
  note(path.join(base, 'package.json'));
};
// The same for what a module asks for: a package may come to stand nearer, or lead to another of
// its files.
const noteAsked = (what, from) => asking(from, () => {
  if (typeof what !== 'string' || !from || ours.includes(what) || what.startsWith('#') || module.isBuiltin(what)) return;
  if (/^(\.\.?(\/|$)|\/)/.test(what)) return noteCandidates(path.resolve(path.dirname(from), what));
  if (what.startsWith('file:')) return noteCandidates(fileURLToPath(what));
  if (/^[a-z+]+:/.test(what)) return what.startsWith('data:') ? undefined : lose();
  const parts = what.split('/'), n = what.startsWith('@') ? 2 : 1;
  for (const d of up(from)) {
    const p = path.join(d, 'node_modules', ...parts.slice(0, n));
    note(p);
    if (!there(p)) continue;
    note(path.join(p, 'package.json'));
    if (parts.length > n) noteCandidates(path.join(p, ...parts.slice(n)));
    return;
  }
});
// tsx and bun follow a tsconfig; one that extends others is not followed here.
const noteTsconfig = f => asking(f, () => {
  for (const d of up(f)) for (const n of ['tsconfig.json', 'jsconfig.json']) {
    const p = path.join(d, n);
    note(p);
    if (there(p) && readFileSync(p, 'utf8').includes('"extends"')) lose();
  }
});
const noteEnv = k => { if (typeof k === 'string') seen.env.add(k); };
process.env = new Proxy(process.env, {
  get(t, k) { noteEnv(k); return t[k]; },
  has(t, k) { noteEnv(k); return k in t; },
  getOwnPropertyDescriptor(t, k) { noteEnv(k); return Reflect.getOwnPropertyDescriptor(t, k); },
  ownKeys(t) { seen.allEnv = true; return Reflect.ownKeys(t); },
});
let channel;
const watchNode = async () => {
  const wrap = (o, names, act) => {
    for (const n of names) {
      const f = o?.[n];
      if (typeof f === 'function') o[n] = Object.assign(function (...a) { act(...a); return f.apply(this, a); }, f);
    }
  };
  const reads = ['readFile', 'open', 'stat', 'lstat', 'access', 'readdir', 'realpath', 'readlink', 'opendir', 'exists', 'createReadStream'];
  const blind = ['copyFile', 'cp', 'glob', 'openAsBlob', 'statfs', 'watch', 'watchFile'];
  for (const o of [fs, fs.promises]) {
    wrap(o, [...reads, ...reads.map(n => n + 'Sync')], (p, how) => { note(p); if (how?.recursive) lose(); });
    wrap(o, [...blind, ...blind.map(n => n + 'Sync')], lose);
  }
  const all = o => Object.keys(o).filter(k => /^[a-z]/.test(k));
  wrap((await import('node:child_process')).default, ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'], lose);
  for (const m of ['node:http', 'node:https']) wrap((await import(m)).default, ['request', 'get'], lose);
  wrap((await import('node:net')).default, ['connect', 'createConnection'], lose);
  const dns = (await import('node:dns')).default;
  for (const o of [dns, dns.promises]) wrap(o, all(o), lose);
  wrap((await import('node:os')).default, ['hostname', 'networkInterfaces', 'userInfo', 'cpus', 'freemem', 'totalmem', 'loadavg', 'uptime'], lose);
  wrap(process, ['loadEnvFile', 'dlopen', 'binding'], lose);
  wrap(globalThis, ['fetch'], lose);
  const threads = (await import('node:worker_threads')).default;
  for (const [o, n] of [[threads, 'Worker'], [fs, 'ReadStream'], [globalThis, 'WebSocket']])
    if (o[n]) Object.defineProperty(o, n, {value: new Proxy(o[n], {construct(t, a, c) { lose(); return Reflect.construct(t, a, c); }}), configurable: true, writable: true});
  module.syncBuiltinESMExports();
};
const scanBun = files => {
  const harmless = new Set(['path', 'node:path', 'url', 'node:url', 'util', 'node:util', 'assert', 'node:assert', ...ours]);
  const queue = [...files], done = new Set();
  // bun reads these by itself, and answers process.env from them
  for (const f of ['bunfig.toml', '.env', ...['local', 'development', 'production', 'test'].flatMap(k => [`.env.${k}`, `.env.${k}.local`])]) note(path.join(req.root, f));
  while (queue.length && seen.keep) {
    const f = queue.pop();
    if (done.has(f)) continue;
    done.add(f);
    noteLoaded(f);
    noteScope(f);
    noteTsconfig(f);
    if (f.endsWith('.json')) continue;
    const text = fs.readFileSync(f, 'utf8'), ext = path.extname(f).slice(1);
    if (done.size > 2000 || /\bBun\b|import\.meta\.(env|glob)|\bfetch\b|\beval\b|\bFunction\b|getBuiltinModule|process\.binding/.test(text)
      || /\b(require|import)\s*\(\s*[^'"\s]/.test(text)) seen.keep = false;
    const loader = {ts: 'ts', mts: 'ts', cts: 'ts', tsx: 'tsx', jsx: 'jsx'}[ext] ?? 'js';
    for (const i of new Bun.Transpiler({loader}).scanImports(text)) {
      if (harmless.has(i.path)) continue;
      if (module.builtinModules.includes(i.path.replace(/^node:/, '')) || /^bun(:|$)/.test(i.path)) { seen.keep = false; continue; }
      noteAsked(i.path, f);
      try { const to = Bun.resolveSync(i.path, path.dirname(f)); edge(f, to); queue.push(to); } catch { seen.keep = false; }
    }
  }
};
const place = path.join(req.root, '@vzn-vx-is-not-a-file.cjs'), placeUrl = pathToFileURL(place).href;
const common = 'exports.defineProject = x => x; exports.defineWorkspace = x => x;';
if (globalThis.Bun) {
  Bun.plugin({name: 'vx', setup(b) { for (const o of ours) b.module(o, () => ({loader: 'object', exports: identity})); }});
} else {
  const {MessageChannel} = await import('node:worker_threads');
  channel = new MessageChannel();
  const hook = `let port; export const initialize = d => { port = d.port; };
    export const load = (url, c, next) => {
      if (url === ${JSON.stringify(placeUrl)}) return {format: 'commonjs', source: ${JSON.stringify(common)}, shortCircuit: true};
      port.postMessage(url);
      return next(url, c);
    };
    export const resolve = async (s, c, next) => {
      let to;
      try { to = await find(s, c, next); return to; } finally { port.postMessage([s, c.parentURL, to?.url]); }
    };
    const find = (s, c, next) => ${JSON.stringify(ours)}.includes(s) ? {url: ${JSON.stringify(dataUrl)}, shortCircuit: true}
      : s === ${JSON.stringify(place)} || s === ${JSON.stringify(placeUrl)} ? {url: ${JSON.stringify(placeUrl)}, format: 'commonjs', shortCircuit: true} : next(s, c);`;
  module.register('data:text/javascript,' + encodeURIComponent(hook), {data: {port: channel.port2}, transferList: [channel.port2]});
  channel.port1.unref();
  await watchNode();
  const load = module.Module._load, resolve = module.Module._resolveFilename;
  module.Module._resolveFilename = function (s, from, ...rest) {
    if (ours.includes(s)) return place;
    noteAsked(s, from?.filename);
    const to = resolve.call(this, s, from, ...rest);
    if (from?.filename) edge(from.filename, to);
    return to;
  };
  module.Module._load = function (s, ...rest) { return ours.includes(s) || s === place ? identity : load.call(this, s, ...rest); };
}
const fromRoot = module.createRequire(path.join(req.root, 'package.json'));
const installed = async name => import(pathToFileURL(fromRoot.resolve(name)).href);
let bring = async file => import(pathToFileURL(file).href);
if (req.mode === 'jiti') {
  const j = await installed('jiti');
  const make = j.createJiti ?? j.default.createJiti ?? j.default;
  const virtual = Object.fromEntries(ours.map(o => [o, identity]));
  const jiti = make(req.root + '/', {interopDefault: true, moduleCache: true, fsCache: false, virtualModules: virtual});
  bring = async file => jiti.import ? jiti.import(file) : jiti(file);
}
if (req.mode === 'esbuild') {
  const e = await installed('esbuild');
  const build = e.build ?? e.default.build;
  const plugin = {name: 'vx', setup(b) {
    b.onResolve({filter: /^@vzn\/vx(\/config)?$/}, a => ({path: a.path, namespace: 'vx'}));
    b.onLoad({filter: /.*/, namespace: 'vx'}, () => ({contents: source}));
  }};
  const native = bring;
  bring = async file => {
    if (!file.endsWith('ts')) return native(file);
    const url = JSON.stringify(pathToFileURL(file).href);
    const out = await build({entryPoints: [file], bundle: true, platform: 'node', format: 'esm', write: false, logLevel: 'silent',
      banner: {js: `import {createRequire as vxCreateRequire} from 'node:module'; const require = vxCreateRequire(${url});`},
      plugins: [plugin], define: {__filename: JSON.stringify(file), __dirname: JSON.stringify(path.dirname(file)),
      'import.meta.url': url, 'import.meta.dirname': JSON.stringify(path.dirname(file))}});
    return import('data:text/javascript,' + encodeURIComponent(out.outputFiles[0].text));
  };
}
// Plain data only: what JSON would lose or change is refused, by its path.
const plain = (v, at, above) => {
  const refuse = what => { throw new Error(`${at || 'the configuration'} is ${what}, but must be plain JSON data`); };
  if (v === null || typeof v === 'string' || typeof v === 'boolean') return v;
  if (typeof v === 'number') return Number.isFinite(v) ? v : refuse(String(v));
  if (typeof v !== 'object') refuse(typeof v === 'undefined' ? 'undefined' : `a ${typeof v}`);
  if (above.includes(v)) refuse('part of a cycle');
  if (above.length > 100) refuse('nested deeper than 100 levels');
  const inside = [...above, v];
  if (Array.isArray(v)) return v.map((x, i) => plain(x, `${at}[${i}]`, inside));
  const proto = Object.getPrototypeOf(v);
  if (proto !== null && Object.getPrototypeOf(proto) !== null) refuse(`an instance of ${v.constructor?.name || 'a class'}`);
  if (Object.getOwnPropertySymbols(v).length) refuse('an object with a symbol as a key');
  const out = {};
  for (const k of Object.keys(v)) {
    if (v[k] === undefined) continue;
    Object.defineProperty(out, k, {value: plain(v[k], at ? `${at}.${k}` : k, inside), enumerable: true, configurable: true, writable: true});
  }
  return out;
};
const one = async file => {
  try {
    const m = await bring(file);
    if (m?.[Symbol.toStringTag] === 'Module' && !('default' in m)) throw new Error('it must export an object as default');
    let v = m && typeof m === 'object' && 'default' in m ? m.default : m;
    if (v && typeof v === 'object' && v.__esModule && 'default' in v) v = v.default;
    if (typeof v === 'function') v = v();
    v = await v;
    if (v === null || typeof v !== 'object') throw new Error('it must export an object as default');
    return {value: plain(v, '', [])};
  } catch (e) {
    const text = e instanceof Error ? `${e.name === 'Error' ? '' : e.name + ': '}${e.message}` : String(e);
    return {error: text.split('\n').map(s => s.trim()).filter(Boolean).slice(0, 3).join(' ').slice(0, 600)};
  }
};
const exit = process.exit.bind(process);
process.exit = () => { throw new Error('it calls process.exit, but must export an object'); };
const results = [];
for (const f of req.files) results.push(await one(f));
if (globalThis.Bun) {
  if (results.every(r => r.value)) scanBun(req.files);
} else {
  const {receiveMessageOnPort} = await import('node:worker_threads');
  for (let m; (m = receiveMessageOnPort(channel.port1));) {
    if (typeof m.message === 'string') { if (m.message.startsWith('file:')) noteLoaded(fileURLToPath(m.message)); continue; }
    const [what, from, to] = m.message;
    if (from?.startsWith('file:') && to?.startsWith('file:')) edge(fileURLToPath(from), fileURLToPath(to));
    if (from?.startsWith('file:') && what !== placeUrl && what !== place) noteAsked(/^\.\.?\//.test(what) ? new URL(what, from).href : what, fileURLToPath(from));
  }
  for (const p of [...seen.paths]) if (/\.([cm]?[jt]sx?|json)$/.test(p)) { noteScope(p); if (typescript) noteTsconfig(p); }
}
const transient = p => req.mode === 'tsx' && p.startsWith(path.join(os.tmpdir(), 'tsx-')); // tsx keeps what it compiled there
if (req.mode === 'jiti' || req.mode === 'esbuild' || seen.paths.size > 20000) seen.keep = false;
// Per path the configurations, by number, that alone it was read for; the others were read for all.
const by = {};
for (const f of Object.keys(module.Module?._cache ?? {})) loaded.add(f);
req.files.forEach((file, i) => {
  const queue = [file], reached = new Set(queue);
  for (let f; (f = queue.pop());) {
    if (!loose.has(f) || loaded.has(f)) (by[f] ??= []).push(i);
    for (const to of edges.get(f) ?? []) if (!reached.has(to)) { reached.add(to); queue.push(to); }
  }
});
const read = {by, keep: seen.keep && results.every(r => r.value), allEnv: seen.allEnv, env: [...seen.env].sort(), paths: [...seen.paths].filter(p => !transient(p)).sort()};
const answer = Buffer.from(JSON.stringify({results, read}));
for (let n = 0; n < answer.length;) n += fs.writeSync(4, answer, n);
exit(0);
