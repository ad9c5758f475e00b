// sandbox-runtime for bench/sandbox: used as a library, in one process for all rounds. Reads "GRANTS CONCURRENCY TASKS" lines, answers "ok" when they have run.
// usage: node sandbox_srt.mjs DIR WORKSPACE    DIR: where `npm install @anthropic-ai/sandbox-runtime` was run (it needs socat and ripgrep)
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [dir, workspace] = process.argv.slice(2);
const { SandboxManager } = await import(pathToFileURL(`${dir}/node_modules/@anthropic-ai/sandbox-runtime/dist/index.js`));
let initialised = -1;

function config(grants) {
  const dirs = Array.from({ length: grants }, (_, i) => `${workspace}/p/g${i}`);
  return {
    network: { allowedDomains: [], deniedDomains: [] },
    filesystem: {
      denyRead: [workspace, "~/.ssh", "~/.aws", "~/.npmrc", "~/.netrc"],
      allowRead: dirs,
      allowWrite: [dirs[0]],
      denyWrite: [],
    },
  };
}

async function one() {
  const command = await SandboxManager.wrapWithSandbox("true");
  await new Promise((resolve, reject) => {
    const child = spawn(command, { shell: true, cwd: `${workspace}/p/g0`, stdio: "ignore" });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`exit ${code}: ${command.slice(0, 300)}`))));
  });
  SandboxManager.cleanupAfterCommand?.();
}

for await (const line of createInterface({ input: process.stdin })) {
  const [grants, concurrency, tasks] = line.split(" ").map(Number);
  try {
    if (initialised !== grants) {
      if (initialised >= 0) await SandboxManager.reset();
      await SandboxManager.initialize(config(grants));
      initialised = grants;
    }
    let started = 0;
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        while (started < tasks) {
          started++;
          await one();
        }
      }),
    );
    console.log("ok");
  } catch (e) {
    console.log(`failed: ${String(e.message).replaceAll("\n", " ")}`);
  }
}
await SandboxManager.reset();
