// Reads a Mermaid drawing from stdin as Mermaid itself does, and prints its nodes and relations as JSON.
import { readFileSync } from "node:fs";
import { JSDOM } from "jsdom";

const { window } = new JSDOM("");
Object.assign(globalThis, { window, document: window.document }); // what Mermaid expects of a browser
const { default: mermaid } = await import("mermaid");
mermaid.initialize({ startOnLoad: false });
const { type, db } = await mermaid.mermaidAPI.getDiagramFromText(readFileSync(0, "utf-8"));
const nodes = [...db.getVertices().values()].map((node) => node.text);
const edges = db.getEdges().map((edge) => [edge.start, edge.end, edge.text]);
console.log(JSON.stringify({ type, nodes, edges }));
