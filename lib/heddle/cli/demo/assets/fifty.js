// Fifty slow requests at once: the server's report of them, drawn as it comes.

import { lines } from "./stream.js"
import { lift, lower, warp } from "./loom.js"
import { draw, dye } from "./svg.js"
import { Timeline, ticks } from "./timeline.js"

const panel = document.getElementById("fifty")
const find = (name) => panel.querySelector(`[data-${name}]`)
const rows = Number(find("timeline").dataset.rows)
const seconds = Number(find("timeline").dataset.seconds)
const timeline = new Timeline(find("timeline"), { rows, span: seconds * 1.25 })
const button = find("run")
let measured = []

// When a request would start if so many threads served them, each for so many seconds.
const reckonedStart = (index, threads) => Math.floor(index / threads) * seconds
const reckonedTotal = (threads) => Math.ceil(rows / threads) * seconds
const threads = () => Number(panel.querySelector("[name=pool]:checked").value)

async function run() {
  if (button.getAttribute("aria-disabled") === "true") return
  button.setAttribute("aria-disabled", "true")
  panel.dataset.sent = ""
  find("status").textContent = `Sending ${rows} requests, each of which sleeps ${seconds} s.`
  measured = Array.from({ length: rows }, () => null)
  timeline.clear()
  compare()
  try {
    report(await follow())
  } catch (error) {
    find("status").textContent = `The server stopped answering: ${error.message}. Is it still running?`
  } finally {
    for (let index = 0; index < rows; index += 1) lower(index)
    button.removeAttribute("aria-disabled")
  }
}

// Reads the server's events and draws them. Between two events the lines grow by the page's own clock.
async function follow() {
  const outcome = { total: null, failed: 0, message: "" }
  const began = performance.now()
  let running = true
  const turn = () => {
    if (!running) return
    const at = (performance.now() - began) / 1000
    timeline.grow(at)
    find("measured").textContent = at.toFixed(2)
    requestAnimationFrame(turn)
  }
  requestAnimationFrame(turn)
  try {
    for await (const line of lines("/fifty")) take(JSON.parse(line), outcome)
  } finally {
    running = false
  }
  if (outcome.total === null) throw new Error("the stream ended early")
  return outcome
}

function take({ event, request, at, message }, outcome) {
  if (event === "start") {
    timeline.start(request, at)
    measured[request] = { from: at, to: null }
    lift(request)
  } else if (event === "done") {
    outcome.total = at
  } else {
    timeline.end(request, at, event === "failed")
    measured[request].to = at
    lower(request)
    if (event === "failed") {
      outcome.failed += 1
      outcome.message = message
    }
  }
}

function report({ total, failed, message }) {
  const times = measured.map(({ from, to }) => to - from)
  const text = failed > 0
    ? `${failed} of ${rows} requests failed: ${message}.`
    : `All ${rows} requests were answered in ${total.toFixed(2)} s. ` +
      `The quickest took ${Math.min(...times).toFixed(3)} s, the slowest ${Math.max(...times).toFixed(3)} s.`
  find("measured").textContent = total.toFixed(2)
  find("status").textContent = text
  timeline.describe(text)
  panel.dataset.total = total
  panel.dataset.failed = failed
  compare()
}

// The two small drawings on one scale: the measured times, and those that a pool of threads would need.
function compare() {
  const pool = threads()
  const total = reckonedTotal(pool)
  const done = measured.length > 0 && measured.every((one) => one?.to)
  find("computed").textContent = total.toFixed(1)
  find("threads").textContent = pool
  const ours = strip("Heddle, measured", done ? "All end together." : "Not measured yet.", (svg) => {
    measured.forEach((one, index) => {
      if (done) mark(svg, index, one.from, one.to, total, "brief")
    })
  })
  const theirs = strip(`${pool} threads, computed: ${Math.ceil(rows / pool)} rounds of ${seconds} s`,
    `They end after ${total} s.`, (svg) => {
      for (let index = 0; index < rows; index += 1) {
        const start = reckonedStart(index, pool)
        if (start > 0) mark(svg, index, 0, start, total, "held")
        mark(svg, index, start, start + seconds, total, "reckoned")
      }
    })
  const axis = document.createElement("div")
  axis.className = "axis"
  find("scales").replaceChildren(ours, theirs, axis)
  ticks(axis, total)
}

function strip(title, description, paint) {
  const element = document.createElement("div")
  element.className = "plot"
  const text = document.createElement("p")
  text.textContent = title
  element.append(text)
  const svg = draw(element, "svg", { height: rows * 2, role: "img", "aria-label": `${title}. ${description}` })
  draw(svg, "rect", { class: "ground", width: "100%", height: rows * 2 })
  paint(svg)
  return element
}

function mark(svg, index, from, to, span, name) {
  const x = (at) => `${(at / span) * 100}%`
  const line = draw(svg, "line", { class: name, x1: x(from), x2: x(to), y1: index * 2 + 1, y2: index * 2 + 1 })
  line.style.setProperty("--dye", dye(index, rows))
}

warp(rows)
compare()
button.addEventListener("click", run)
for (const choice of panel.querySelectorAll("[name=pool]")) choice.addEventListener("change", compare)
