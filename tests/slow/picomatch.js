// Random globs and paths, and what picomatch says: "dialect TAB pattern TAB path TAB 0|1 TAB apart" lines on stdout. node picomatch.js COUNT SEED, with picomatch to be required from the
// current directory.
//   v: configuration globs: brackets and extglobs are literal, a wildcard matches a leading dot
//   m: workspace members: classes, and no wildcard matches a leading dot
// `apart` says why a different answer would be meant:
//   braces  here braces are expanded first, as shells do; picomatch makes alternatives of them, whose stars and dots behave otherwise
//   zero    here a `**` at the end matches no component too; picomatch says so of "a/**", "?/**" and "*.c/**", but not behind a component that ends in a star
//   stars   three stars in a row: here a component of any name; picomatch now and then takes them for a `**`
//   dot     a class matches no leading dot, as in shells and for package managers; picomatch lets it
const picomatch = require(require.resolve("picomatch", { paths: [process.cwd()] }));
const count = Number(process.argv[2]);
let state = BigInt(process.argv[3] || 1) * 0x9e3779b97f4a7c15n + 1n;
const mask = (1n << 64n) - 1n;
function below(n) {
	state = state & mask;
	state ^= (state << 13n) & mask;
	state ^= state >> 7n;
	state ^= (state << 17n) & mask;
	return Number((state >> 20n) % BigInt(n));
}
const pick = (a) => a[below(a.length)];

function part(d, depth) {
	let s = "";
	for (let n = 1 + below(3); n; n--) {
		const k = below(16);
		if (k < 8) s += pick(["a", "b", "ab", "c", "x.ts", "-", "_", "1"]);
		else if (k < 11) s += "*";
		else if (k < 12) s += "?";
		else if (k < 13 && !s) s += ".";
		else if (k < 14 && depth < 2) s += "{" + part(d, depth + 1) + "," + part(d, depth + 1) + (below(3) ? "" : "," + part(d, depth + 1)) + "}";
		else if (d === "v") s += pick(["[id]", "[a-b]", "%", "@", "ab"]);
		else s += pick(["[ab]", "[a-c]", "[!a]", "[^b]", "a"]);
	}
	return s;
}
function pattern(d) {
	const parts = [];
	for (let n = 1 + below(4); n; n--) parts.push(below(4) ? part(d, 0) : "**");
	return parts.join("/");
}
function fromPattern(p) {
	// A path that is likely to match: each wildcard is filled in.
	return p
		.replace(/\{([^{},]*),[^{}]*\}/g, "$1")
		.replace(/\*\*/g, () => pick(["a", "a/b", ".a", "b/c/x.ts"]))
		.replace(/\*/g, () => pick(["", "a", "ab", "b.c", ".x"]))
		.replace(/\?/g, () => pick(["a", "b", "."]))
		.replace(/\[!?\^?(.).*?\]/g, (m, c) => (below(2) ? c : m));
}
function path(p) {
	if (below(3)) {
		const s = fromPattern(p);
		if (/^[^/]/.test(s) && !/\/\/|\/$|[{}*?]/.test(s)) return s;
	}
	const parts = [];
	for (let n = 1 + below(4); n; n--) parts.push(pick(["a", "b", "ab", "c", "x.ts", ".a", ".x.ts", "1", "-", "[id]", "[a-b]", "abc", "aab", "a.b", "$", "@"]));
	return parts.join("/");
}
function expand(p) {
	for (let i = 0; i < p.length; i++) {
		if (p[i] !== "{") continue;
		let depth = 0;
		const cuts = [i];
		for (let k = i; k < p.length; k++) {
			if (p[k] === "{") depth++;
			if (p[k] === "," && depth === 1) cuts.push(k);
			if (p[k] === "}" && --depth === 0) {
				cuts.push(k);
				return cuts.slice(1).flatMap((c, n) => expand(p.slice(0, i) + p.slice(cuts[n] + 1, c) + p.slice(k + 1)));
			}
		}
	}
	return [p];
}
function apart(d, p, s, o, yes) {
	const arms = expand(p);
	const why = [];
	if (arms.length > 1) {
		const one = arms.some((a) => a === s || picomatch(a, o)(s));
		const glued = arms.some((a) => /\*\*[^/]|[^/]\*\*|(^|\/)\.?(\/|$)/.test(a)) || (arms.some((a) => a.includes("**")) && /[{,][^{}]*\*|\}\*/.test(p));
		if (one !== yes || glued) why.push("braces");
	}
	if (arms.some((a) => /\*(\/\*\*)+$/.test(a))) why.push("zero");
	if (arms.some((a) => /\*{3}/.test(a))) why.push("stars");
	if (d === "m" && /(^|\/)\./.test(s) && arms.some((a) => /(^|\/)\[/.test(a))) why.push("dot");
	return why.join(",");
}
const bad = (s) => s.split("/").some((x) => x === "." || x === ".." || x === "");
const lines = [];
for (let i = 0; i < count; ) {
	const d = below(2) ? "v" : "m";
	const p = pattern(d), s = path(p);
	if (bad(p) || bad(s)) continue;
	if (expand(p).some((a) => /(^|\/)\.\.(\/|$)/.test(a))) continue; // refused here
	if (d === "m" && /\[/.test(s) && expand(p).includes(s)) continue; // picomatch takes equal strings for a match before it looks at classes
	const o = { dot: d === "v", noextglob: true, nobracket: d === "v", nonegate: true, literalBrackets: false, posix: d === "m" };
	// A literal entry names a whole tree, a member's directory itself alone.
	const literal = d === "v" && !/[*?{]/.test(p);
	const yes = picomatch(p, o)(s) || (literal && s.startsWith(p + "/"));
	lines.push([d, p, s, yes ? 1 : 0, apart(d, p, s, o, yes)].join("\t"));
	i++;
}
process.stdout.write(lines.join("\n") + "\n");
