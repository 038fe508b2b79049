// PreToolUse: refuse to delete the root directory. Answers with one JSON object on stdout.
const chunks = [];
process.stdin.on("data", (chunk) => chunks.push(chunk));
process.stdin.on("end", () => {
  const event = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  const command = String(event.tool_input?.command ?? "");
  const answer = /\brm\s+-\w*r\w*f\w*\s+\/(\s|$)/.test(command)
    ? { decision: "block", reason: `deleting the root directory is forbidden: ${command}` }
    : {};
  process.stdout.write(JSON.stringify(answer));
});
