// Draw the graph from the lists of the page: the drawing has what they have, and follows them when they change.

import cytoscape from "./vendor/cytoscape.js";

const LABELLED = 40; // most relations whose types are written beside them
const HUBS = 16; // entities with the most relations, whose names are written even when the drawing is small
const GOLDEN = Math.PI * (3 - Math.sqrt(5)); // the angle between two places of a spiral that never overlap
const figure = document.getElementById("drawing");
const canvas = figure.querySelector(".canvas");
const canMove = !matchMedia("(prefers-reduced-motion: reduce)").matches;
let drawing = null;
let drawn = ""; // what the drawing shows, to draw it again only when that changed

// The library adds a style element unless an element with this id is there; the page's policy forbids that, and style.css has the rule.
document.head.append(Object.assign(document.createElement("meta"), { id: "__________cytoscape_stylesheet" }));

function read() {
  const lists = document.querySelector(".graph-lists");
  if (!lists) return null;
  const most = Number(lists.dataset.drawn);
  const rows = [...lists.querySelectorAll("[data-node]")].slice(0, most);
  const relations = [...lists.querySelectorAll("[data-from]")].filter((row) => row.dataset.from < most && row.dataset.to < most);
  return { lists, rows, relations };
}

function elements({ lists, rows, relations }) {
  const degrees = rows.map(() => 0);
  for (const { dataset } of relations) for (const end of new Set([dataset.from, dataset.to])) degrees[end] += 1;
  const isPath = "path" in lists.dataset;
  const least = [...degrees].sort((a, b) => b - a)[Math.min(HUBS, degrees.length) - 1];
  const named = (place) => isPath || degrees[place] > least || (degrees[place] === least && rows.length <= HUBS);
  const along = canvas.clientWidth < 500 ? "y" : "x"; // a path leads down where there is no room to the right
  const nodes = rows.map((row, place) => ({
    data: {
      id: row.dataset.node,
      name: row.dataset.name,
      shape: row.dataset.shape,
      color: getComputedStyle(row.querySelector(".glyph")).color,
      size: "centre" in row.dataset ? 34 : 14 + Math.min(16, 4 * Math.sqrt(degrees[place])),
      address: row.querySelector("[data-item]").href,
    },
    classes: `${"centre" in row.dataset ? "centre" : ""} ${named(place) ? "hub" : ""}`,
    // The first places are in the middle: the nearest or most connected entities. A path is a line.
    position: isPath ? { x: 0, y: 0, [along]: 130 * place } : { x: 45 * Math.sqrt(place) * Math.cos(place * GOLDEN), y: 45 * Math.sqrt(place) * Math.sin(place * GOLDEN) },
  }));
  const lines = relations.map(({ dataset }, place) => ({ data: { id: `r${place}`, source: dataset.from, target: dataset.to, type: dataset.type } }));
  return [...nodes, ...lines];
}

function style(relations) {
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const font = { "font-family": getComputedStyle(document.body).fontFamily, color: token("--text"), "text-outline-color": token("--raised"), "text-outline-width": 2 };
  const written = { label: "data(type)", "text-rotation": "autorotate", "font-size": 9, color: token("--muted"), "min-zoomed-font-size": 6 };
  return [
    {
      selector: "node",
      style: {
        ...font, shape: "data(shape)", "background-color": "data(color)", width: "data(size)", height: "data(size)",
        label: "data(name)", "font-size": 11, "text-valign": "bottom", "text-margin-y": 3, "text-wrap": "ellipsis", "text-max-width": 130, "min-zoomed-font-size": 6,
      },
    },
    { selector: "node[shape = 'ellipse']", style: { "background-color": token("--raised"), "border-width": 2, "border-color": "data(color)" } },
    { selector: "node.hub", style: { "min-zoomed-font-size": 0 } },
    { selector: "node.centre", style: { "font-weight": "bold", "font-size": 13, "min-zoomed-font-size": 0 } },
    {
      selector: "edge",
      style: {
        ...font, width: 1, "line-color": token("--strong-line"), "target-arrow-color": token("--strong-line"), "target-arrow-shape": "triangle",
        "arrow-scale": 0.7, "curve-style": "bezier", ...(relations.length <= LABELLED ? written : {}),
      },
    },
    { selector: ".away", style: { opacity: 0.2 } },
    { selector: "node.chosen", style: { "underlay-color": token("--focus"), "underlay-opacity": 0.4, "underlay-padding": 6, "min-zoomed-font-size": 0 } },
    { selector: "edge.near", style: { ...written, width: 2, "line-color": token("--accent"), "target-arrow-color": token("--accent"), "min-zoomed-font-size": 0 } },
    { selector: "node.near", style: { "min-zoomed-font-size": 0 } },
  ];
}

function draw() {
  const shown = read();
  const signature = shown ? shown.lists.innerHTML : "";
  if (signature === drawn) return;
  drawn = signature;
  drawing?.destroy();
  drawing = null;
  figure.hidden = !shown;
  if (!shown) return;
  canvas.setAttribute("aria-label", shown.lists.dataset.label);
  drawing = cytoscape({
    container: canvas,
    elements: elements(shown),
    style: style(shown.relations),
    layout: "path" in shown.lists.dataset
      ? { name: "preset", fit: true, padding: 40 }
      : { name: "cose", randomize: false, animate: false, fit: true, padding: 24, nodeRepulsion: () => 12_000, idealEdgeLength: () => 70, componentSpacing: 60, nodeDimensionsIncludeLabels: shown.rows.length <= 60, numIter: 600 },
    minZoom: 0.1,
    maxZoom: 3,
    userZoomingEnabled: matchMedia("(pointer: coarse)").matches, // elsewhere the wheel scrolls the page, and zooms with Ctrl
  });
  if (drawing.zoom() > 1.4) drawing.zoom(1.4).center();
  enlarge(1 / drawing.zoom());
  drawing.on("tap", (event) => choose(event.target === drawing || !event.target.isNode() ? null : event.target));
  drawing.on("dbltap", "node", (event) => location.assign(event.target.data("address")));
  figure.dataset.ready = shown.rows.length;
}

// Keep marks and the names of hubs large enough to be read in a drawing that had to be made small.
function enlarge(factor) {
  if (factor <= 1) return;
  drawing.nodes().forEach((node) => node.data("size", node.data("size") * Math.min(factor, 1.6)));
  drawing.nodes(".hub, .centre").style({ "font-size": 11 * factor, "text-max-width": 130 * factor });
}

// Choose an entity: its relations stand out, and its row shows which it is.
function choose(node) {
  drawing.elements().removeClass("away chosen near");
  for (const row of document.querySelectorAll(".graph-lists .chosen")) row.classList.remove("chosen");
  if (!node) return;
  const near = node.closedNeighborhood();
  drawing.elements().not(near).addClass("away");
  near.addClass("near");
  node.addClass("chosen");
  const row = document.querySelector(`[data-node="${node.id()}"]`);
  row.classList.add("chosen");
  row.scrollIntoView({ block: "nearest", behavior: canMove ? "smooth" : "auto" });
}

// The row that has the focus is chosen in the drawing.
document.addEventListener("focusin", (event) => {
  const row = event.target.closest?.("[data-node]");
  const node = row && drawing?.getElementById(row.dataset.node);
  if (node?.length) choose(node);
});

function zoom(factor, at) {
  if (!drawing) return;
  if (!factor) drawing.fit(undefined, 24);
  else drawing.zoom({ level: drawing.zoom() * factor, renderedPosition: at ?? { x: drawing.width() / 2, y: drawing.height() / 2 } });
}

figure.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(Number(button.dataset.zoom));
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 300), { x: event.offsetX, y: event.offsetY });
}, { passive: false });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawn = "";
  draw();
});
new MutationObserver(draw).observe(figure.parentElement, { childList: true }); // page.js replaces the lists when data changed
draw();
