"""The style and the script of the interactive page."""

STYLE = """
body{background:var(--ground);color:var(--text);font:14px system-ui,"DejaVu Sans",sans-serif;margin:20px}
h1{font-size:17px;margin:0 0 10px}
#bar{display:flex;gap:20px;align-items:center;min-height:28px}
#readout{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-variant-numeric:tabular-nums;white-space:pre-wrap}
#caption{color:var(--secondary);font-size:12px;max-width:1100px;white-space:pre-wrap}
select{font:inherit}
canvas{display:block;max-width:100%;margin-top:6px;cursor:crosshair;outline-offset:2px}
canvas:focus-visible{outline:2px solid var(--accent)}
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [r0, r1] = data.rows, [c0, c1] = data.cols, H = r1 - r0, W = c1 - c0;
const blobs = [...document.querySelectorAll("script.values")];
const decoded = new Map();
const which = document.getElementById("which"), readout = document.getElementById("readout");
const canvas = document.getElementById("map"), draw = canvas.getContext("2d");
const mono = '"DejaVu Sans Mono", ui-monospace, monospace';
let index = 0, cell = null;

function values(i) {
  if (!decoded.has(i)) {
    const text = atob(blobs[i].textContent), bytes = new Uint8Array(text.length);
    for (let j = 0; j < text.length; j++) bytes[j] = text.charCodeAt(j);
    const view = new DataView(bytes.buffer), out = new Float32Array(H * W);
    for (let j = 0; j < out.length; j++) out[j] = view.getFloat32(4 * j, true);
    decoded.set(i, out);
  }
  return decoded.get(i);
}

function place(v) {  // 0 … 1 on the colour bar, as the figures do
  const {low, high, scale, signed} = data.levels;
  if (signed) {
    let half = Math.min(Math.abs(v) / high, 1);
    if (scale === "sqrt") half = Math.sqrt(half);
    if (scale === "log") half = Math.log1p(half / 1e-3) / Math.log1p(1e3);
    return 0.5 + 0.5 * Math.sign(v) * half;
  }
  let at = scale === "log" ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low);
  at = Math.min(Math.max(at, 0), 1);
  return scale === "sqrt" ? Math.sqrt(at) : at;
}

function pixel(v) { return Number.isNaN(v) ? 0 : 1 + Math.round(place(v) * 254); }

function shortest(v) {  // the fewest digits that read back to the same float32
  if (Number.isNaN(v)) return "masked";
  for (let digits = 1; digits <= 9; digits++) {
    const text = v.toPrecision(digits);
    if (Math.fround(Number(text)) === v) return String(Number(text));
  }
  return String(v);
}

let scale = 1, left = 0, top_ = 0, size = 1;

function layout() {
  const ratio = window.devicePixelRatio || 1;
  const room = Math.max(240, Math.min(window.innerWidth - 40, 1100)), tall = Math.max(240, window.innerHeight - 190);
  left = 150; top_ = 110;
  const side = Math.max(1, Math.min((room - left - 110) / W, (tall - top_) / H, 44));
  size = side;
  const wide = left + W * side + 110, high = top_ + H * side + 6;
  canvas.width = Math.round(wide * ratio); canvas.height = Math.round(high * ratio);
  canvas.style.width = wide + "px"; canvas.style.height = high + "px";
  scale = ratio;
}

function raster() {  // never fewer pixels than one a screen pixel; the extreme of the cells under it
  const wide = Math.max(1, Math.min(W, Math.round(W * size * scale)));
  const high = Math.max(1, Math.min(H, Math.round(H * size * scale)));
  const best = new Float32Array(wide * high).fill(NaN), v = values(index), signed = data.levels.signed;
  for (let r = 0; r < H; r++) for (let c = 0; c < W; c++) {
    const x = v[r * W + c];
    if (Number.isNaN(x)) continue;
    const at = Math.floor(r * high / H) * wide + Math.floor(c * wide / W), b = best[at];
    if (Number.isNaN(b) || (signed ? Math.abs(x) > Math.abs(b) : x > b)) best[at] = x;
  }
  const image = new ImageData(wide, high);
  for (let j = 0; j < best.length; j++) {
    const p = 4 * pixel(best[j]);
    for (let k = 0; k < 4; k++) image.data[4 * j + k] = data.lut[p + k];
  }
  const small = document.createElement("canvas");
  small.width = wide; small.height = high;
  small.getContext("2d").putImageData(image, 0, 0);
  return small;
}

let picture = null;

function ground() {  // of masked cells: lines that no colour of a map has
  if (!values(index).some(Number.isNaN)) return;
  const wide = W * size, high = H * size;
  draw.fillStyle = data.masked; draw.fillRect(left, top_, wide, high);
  draw.strokeStyle = data.hatch; draw.lineWidth = 1;
  draw.beginPath();
  for (let at = 3.5; at < wide + high; at += 7) {
    const into = Math.max(0, at - high), out = Math.min(at, wide);
    draw.moveTo(left + into, top_ + at - into); draw.lineTo(left + out, top_ + at - out);
  }
  draw.stroke();
}

function elide(s) { return [...s].length > 18 ? [...s].slice(0, 17).join("") + "…" : s; }

function voice(on, at) {
  return data.boundary && at >= data.boundary ? data.amber : on ? data.text : data.secondary;
}

function paint() {
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, canvas.width, canvas.height);
  ground();
  draw.imageSmoothingEnabled = false;
  draw.drawImage(picture, left, top_, W * size, H * size);
  const every = Math.max(1, Math.ceil(15 / size));
  const font = Math.min(12, Math.max(9, size * 0.8));
  for (let r = 0; r < H; r++) {
    const on = cell && cell[0] === r;
    if (!on && (r % every || (cell && Math.abs(cell[0] - r) * size < 13))) continue;
    draw.font = (on ? "bold " : "") + font + "px " + mono;
    draw.fillStyle = voice(on, r0 + r); draw.textAlign = "right"; draw.textBaseline = "middle";
    draw.fillText(elide(data.rowPieces[r]) + (every > 1 ? " " + (r0 + r) : ""), left - 5, top_ + (r + 0.5) * size);
  }
  for (let c = 0; c < W; c++) {
    const on = cell && cell[1] === c;
    if (!on && (c % every || (cell && Math.abs(cell[1] - c) * size < 13))) continue;
    draw.save();
    draw.translate(left + (c + 0.5) * size, top_ - 5); draw.rotate(-Math.PI / 3);
    draw.font = (on ? "bold " : "") + font + "px " + mono;
    draw.fillStyle = voice(on, c0 + c); draw.textAlign = "left"; draw.textBaseline = "middle";
    draw.fillText(elide(data.colPieces[c]) + (every > 1 ? " " + (c0 + c) : ""), 0, 0);
    draw.restore();
  }
  if (data.boundary > r0 && data.boundary < r1) {
    const y = top_ + (data.boundary - r0) * size;
    draw.strokeStyle = draw.fillStyle = data.amber; draw.lineWidth = 1; draw.setLineDash([5, 3]);
    draw.beginPath(); draw.moveTo(left, y); draw.lineTo(left + W * size + 4, y); draw.stroke(); draw.setLineDash([]);
    draw.font = "11px system-ui, sans-serif"; draw.textAlign = "left"; draw.textBaseline = "alphabetic";
    draw.fillText("prefill \\u2191", left + W * size + 7, y - 4);
    draw.fillText("decode \\u2193", left + W * size + 7, y + 12);
  }
  if (cell) {
    const x = left + cell[1] * size, y = top_ + cell[0] * size;
    draw.strokeStyle = "#fff"; draw.lineWidth = 2; draw.strokeRect(x, y, Math.max(size, 3), Math.max(size, 3));
    draw.strokeStyle = data.text; draw.lineWidth = 0.5;
    draw.beginPath(); draw.moveTo(left, y + size / 2); draw.lineTo(x, y + size / 2);
    draw.moveTo(x + size / 2, top_); draw.lineTo(x + size / 2, y); draw.stroke();
  }
}

function show(r, c) {
  cell = [Math.min(Math.max(r, 0), H - 1), Math.min(Math.max(c, 0), W - 1)];
  const v = values(index)[cell[0] * W + cell[1]];
  readout.textContent = "query " + data.rowPieces[cell[0]] + " (" + (r0 + cell[0]) + ") \\u2192 key " +
    data.colPieces[cell[1]] + " (" + (c0 + cell[1]) + ")   " + data.what + " " + shortest(v);
  paint();
}

function redraw() { layout(); picture = raster(); if (cell) show(cell[0], cell[1]); else paint(); }

canvas.addEventListener("mousemove", (event) => {
  const box = canvas.getBoundingClientRect(), zoom = canvas.width / scale / box.width;
  const c = Math.floor(((event.clientX - box.left) * zoom - left) / size);
  const r = Math.floor(((event.clientY - box.top) * zoom - top_) / size);
  if (r >= 0 && r < H && c >= 0 && c < W) show(r, c);
});
canvas.addEventListener("keydown", (event) => {
  const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
  if (!step) return;
  event.preventDefault();
  show(...(cell ? [cell[0] + step[0], cell[1] + step[1]] : [0, 0]));
});
data.names.forEach((name, i) => which.add(new Option(name, i)));
document.getElementById("pick").hidden = data.names.length < 2;
which.addEventListener("change", () => { index = Number(which.value); redraw(); });
window.addEventListener("resize", redraw);
redraw();
"""
