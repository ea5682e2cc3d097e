"use strict";
// Shows the numbers of a chart under the pointer: of all curves, or of the nearest one if there are many.
const MOST = 14;
const text = (value) => String(Number(value.toPrecision(6))).replace("-", "\u2212");

// The date at x on the clock of the run: "2024-01-31 12:00"; seconds only in short runs.
function date(data, x) {
  const at = new Date(Date.parse(data.start) + 1e3 * data.size * x).toISOString().replace("T", " ");
  return at.slice(0, data.size * (data.high - data.low) < 7200 ? 19 : 16);
}

function nearest(sorted, x) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle; else high = middle;
  }
  return Math.abs(sorted[high] - x) < Math.abs(sorted[low] - x) ? high : low;
}

function follow(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const svg = figure.querySelector("svg"), shown = figure.querySelector(".shown");
  const cursor = figure.querySelector(".cursor");
  const leave = () => { shown.hidden = true; cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), zoom = svg.viewBox.baseVal.width / box.width;
    const px = (event.clientX - box.left) * zoom, py = (event.clientY - box.top) * zoom;
    if (px < data.left || px > data.right) return leave();
    const x = data.low + (px - data.left) / (data.right - data.left) * (data.high - data.low);
    const y = data.yHigh - (py - data.top) / (data.bottom - data.top) * (data.yHigh - data.yLow);
    let found = data.curves.map((curve) => {
      const at = nearest(curve.x, x);
      return { curve, x: curve.x[at], y: curve.y[at] };
    });
    if (found.length > MOST) {
      found.sort((a, b) => Math.abs(a.y - y) - Math.abs(b.y - y));
      found = found.slice(0, 1);
    }
    const place = data.left + (found[0].x - data.low) / (data.high - data.low) * (data.right - data.left);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    shown.replaceChildren();
    const head = document.createElement("b");
    head.textContent = data.start === null ? `${data.x}: ${text(found[0].x)}` : date(data, found[0].x);
    shown.append(head);
    for (const { curve, y: value } of found) {
      const row = document.createElement("span"), colour = document.createElement("i");
      colour.style.background = curve.colour;
      row.append(colour, `${curve.name}: ${text(value)}`);
      shown.append(row);
    }
    shown.hidden = false;
    const right = place > (data.left + data.right) / 2;
    shown.style.left = right ? "" : `${place / zoom + 12}px`;
    shown.style.right = right ? `${box.width - place / zoom + 12}px` : "";
  });
}

document.querySelectorAll("figure.chart").forEach(follow);
document.querySelectorAll(".pictures img").forEach((image) => {
  image.addEventListener("click", () => image.parentElement.classList.toggle("large"));
});
