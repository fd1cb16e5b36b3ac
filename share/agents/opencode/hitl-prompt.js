// A plugin of OpenCode: asks hitl-prompt before each tool call. Copy it to ~/.config/opencode/plugins/.
import { spawn } from "node:child_process";

function ask(event) {
  return new Promise((resolve, reject) => {
    const child = spawn("hitl-prompt", ["hook", "--cli", "opencode"], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    let out = "";
    child.on("error", reject);
    child.stdin.on("error", reject);
    child.stdout.on("data", (data) => (out += data));
    child.on("close", () => {
      try {
        resolve(JSON.parse(out));
      } catch {
        reject(new Error("hitl-prompt gave no decision"));
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

export const HitlPrompt = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const reply = await ask({
      event: "tool.execute.before",
      tool: input.tool,
      sessionID: input.sessionID,
      callID: input.callID,
      cwd: directory,
      args: output.args,
    });
    if (reply.decision !== "allow") throw new Error(reply.reason || "denied");
    if (reply.args) {
      for (const key of Object.keys(output.args)) delete output.args[key];
      Object.assign(output.args, reply.args);
    }
  },
});
