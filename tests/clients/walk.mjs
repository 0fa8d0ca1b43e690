// Calls every tool, reads, watches and completes with one of the public SDKs: node walk.mjs legacy|modern http|sse|stdio
// The daemon: MEMEX_URL, MEMEX_ENDPOINT (/mcp), MEMEX_KEY; for stdio the command that bridges to it: MEMEX_BRIDGE, a list in JSON.
// What came back goes to stdout as one object of JSON.

const [era, way] = process.argv.slice(2);
const { MEMEX_URL: url, MEMEX_ENDPOINT: endpoint = "/mcp", MEMEX_KEY: key, MEMEX_BRIDGE: bridge } = process.env;
const info = { name: "memex-test", version: "1.0.0" };
const headers = { Authorization: `Bearer ${key}`, "X-Memory-Workspace": "default" };

async function opened() {
  const [command, ...args] = JSON.parse(bridge);
  const spawned = { command, args, env: { ...process.env }, stderr: "inherit" };
  if (era === "legacy") {
    const at = "@modelcontextprotocol/sdk/client";
    const { Client } = await import(`${at}/index.js`);
    const transport = {
      http: async () => new (await import(`${at}/streamableHttp.js`)).StreamableHTTPClientTransport(new URL(`${url}${endpoint}`), { requestInit: { headers } }),
      sse: async () => new (await import(`${at}/sse.js`)).SSEClientTransport(new URL(`${url}/sse`), { requestInit: { headers } }),
      stdio: async () => new (await import(`${at}/stdio.js`)).StdioClientTransport(spawned),
    };
    return [new Client(info, { capabilities: {} }), await transport[way]()];
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const transport = way === "http" ? new StreamableHTTPClientTransport(new URL(`${url}${endpoint}`), { requestInit: { headers } }) : new StdioClientTransport(spawned);
  return [new Client(info, { capabilities: {}, versionNegotiation: { mode: "auto" } }), transport];
}

async function legacyUpdates(told) {
  const { ResourceUpdatedNotificationSchema } = await import("@modelcontextprotocol/sdk/types.js");
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, told);
}

const [client, transport] = await opened();
await client.connect(transport);
const call = (name, args) => client.callTool({ name, arguments: args });
const content = `Walked by ${era} over ${way}: 検索 🌙\r\n\u2028end `;
const done = {};
done.protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? "";
done.server = client.getServerVersion()?.name;
done.tools = (await client.listTools()).tools.map((tool) => tool.name);
done.captured = (await call("capture_thought", { content, source: "walk" })).structuredContent;
const id = done.captured.id;
done.found = (await call("semantic_search", { query: `walked by ${era} over ${way}` })).structuredContent.results.map((hit) => hit.document_id);
done.same = (await call("get_thought", { id })).structuredContent.content === content;
done.recent = (await call("list_recent", { limit: 5 })).structuredContent.results.map((one) => one.id);
const { uri } = (await client.listResources()).resources.find((one) => one.uri.startsWith("note://"));
done.template = (await client.listResourceTemplates()).resourceTemplates[0].uriTemplate;
const [read] = (await client.readResource({ uri })).contents;
done.read = { same: read.text === content, kind: read.mimeType, id: read._meta["dev.memex/id"] };
done.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
const asked = await client.getPrompt({ name: "recall", arguments: { question: `walked by ${era} over ${way}` } });
done.recalled = asked.messages[0].content.text.includes(id);
const completed = (ref, name, value) => client.complete({ ref, argument: { name, value } }).then((answer) => answer.completion.values);
done.spaces = await completed({ type: "ref/resource", uri: done.template }, "workspace", "");
done.paths = await completed({ type: "ref/resource", uri: done.template }, "path", "walked");
done.tags = await completed({ type: "ref/prompt", name: "recall" }, "tags", "no such");
done.missing = await client.readResource({ uri: `${uri}.not` }).catch((error) => error.code);

// A session's own stream may open after its first answers, so the note is touched until that is heard.
const heard = new Promise((resolve) => {
  const told = (notification) => resolve(notification.params.uri);
  if (era === "legacy") legacyUpdates(told);
  else client.setNotificationHandler("notifications/resources/updated", told);
});
const subscription = era === "legacy" ? await client.subscribeResource({ uri }) : await client.listen({ resourceSubscriptions: [uri] });
for (let tries = 0; tries < 20 && !done.updated; tries += 1) {
  await call("capture_thought", { content });
  done.updated = (await Promise.race([heard, new Promise((resolve) => setTimeout(resolve, 500))])) === uri;
}
if (era === "legacy") await client.unsubscribeResource({ uri });
else await subscription.close();
done.deleted = (await call("delete_thought", { id })).structuredContent;
const gone = await call("get_thought", { id });
done.error = { isError: gone.isError, code: gone._meta?.["dev.memex/error"]?.code, text: JSON.parse(gone.content[0].text).error.code };
const wrong = await call("semantic_search", { query: "" });
done.invalid = { isError: wrong.isError, code: wrong._meta?.["dev.memex/error"]?.code };
await client.close();
console.log(JSON.stringify(done));
process.exit(0);
