// Fifty slow requests at once: draws the server's report of them while it arrives.

import { draw, dye, finder, lines, ticks } from "./shared.js"
import { Timeline } from "./timeline.js"

const panel = document.getElementById("fifty")
const find = finder(panel)
const chosen = (name) => panel.querySelector(`[name=${name}]:checked`)
const rows = Number(find("timeline").dataset.rows)
const seconds = Number(find("timeline").dataset.seconds)
const button = find("run")
let timeline = null
let measured = []

// The time, in seconds, at which a request would start in a pool with this many threads.
const computedStart = (index, threads) => Math.floor(index / threads) * seconds

function clear(way) {
  timeline = new Timeline(find("timeline"), { rows, blocking: way !== "", span: seconds * (way === "" ? 1.25 : 2.5) })
  measured = Array.from({ length: rows + 1 }, () => ({ from: null, to: null }))
  compare()
}

async function run() {
  if (button.getAttribute("aria-disabled") === "true") return
  const way = chosen("way").value
  const name = chosen("way").nextElementSibling.textContent
  button.setAttribute("aria-disabled", "true")
  panel.dataset.sent = ""
  delete panel.dataset.total
  find("status").textContent = `Sending ${rows} requests, each of which sleeps ${seconds} s` +
    `${way === "" ? "" : `, and one that blocks the thread in ${name}`}.`
  clear(way)
  try {
    report(await follow(`/fifty?way=${way}`), way === "" ? null : name)
  } catch (error) {
    find("status").textContent = `The run failed: ${error.message}.`
  } finally {
    button.removeAttribute("aria-disabled")
  }
}

// Reads the server's events and draws them. Between two events the lines grow by the page's own clock.
async function follow(path) {
  const outcome = { failed: 0, message: "", complete: false }
  const began = performance.now()
  let running = true
  const turn = () => {
    if (!running) return
    const at = (performance.now() - began) / 1000
    timeline.grow(at)
    if (!measured.slice(0, rows).every((one) => one.to)) find("measured").textContent = at.toFixed(2)
    requestAnimationFrame(turn)
  }
  requestAnimationFrame(turn)
  try {
    for await (const line of lines(path)) take(JSON.parse(line), outcome)
  } finally {
    running = false
  }
  if (!outcome.complete) throw new Error("the stream ended early")
  return outcome
}

function take({ event, request, at, status, message }, outcome) {
  if (event === "done") {
    outcome.complete = true
  } else if (event === "start") {
    timeline.start(request, at)
    measured[request].from = at
  } else {
    const failed = event === "failed" || status !== 200
    timeline.end(request, at, failed)
    measured[request].to = at
    if (failed) Object.assign(outcome, { failed: outcome.failed + 1, message: message ?? `status ${status}` })
  }
}

function report({ failed, message }, blocking) {
  const fifty = measured.slice(0, rows)
  const times = fifty.map(({ from, to }) => to - from)
  const total = Math.max(...fifty.map(({ to }) => to))
  const block = measured[rows]
  const text = failed > 0
    ? `${failed} of ${rows} requests failed: ${message}.`
    : `All ${rows} requests were answered in ${total.toFixed(2)} s. ` +
      `The quickest took ${Math.min(...times).toFixed(3)} s, the slowest ${Math.max(...times).toFixed(3)} s.` +
      `${blocking ? ` One more request blocked the thread in ${blocking} for ${(block.to - block.from).toFixed(2)} s.` : ""}`
  find("measured").textContent = total.toFixed(2)
  find("status").textContent = text
  timeline.describe(text)
  Object.assign(panel.dataset, { total, failed })
  compare()
}

// Draws two small pictures on one scale: the measured times, and the times that a pool of threads would need.
function compare() {
  const pool = Number(chosen("pool").value)
  const rounds = Math.ceil(rows / pool)
  const total = rounds * seconds
  const fifty = measured.slice(0, rows)
  const done = fifty.length > 0 && fifty.every((one) => one.to)
  find("computed").textContent = total.toFixed(1)
  find("threads").textContent = pool
  const ours = strip("Heddle, measured", done ? "All end together." : "Not measured yet.", (line) => {
    if (done) fifty.forEach((one, index) => line(index, one.from / total, one.to / total, "brief"))
  })
  const theirs = strip(`${pool} threads, computed: ${rounds} rounds of ${seconds} s`, `They end after ${total} s.`, (line) => {
    for (let index = 0; index < rows; index += 1) {
      const start = computedStart(index, pool)
      if (start > 0) line(index, 0, start / total, "held")
      line(index, start / total, (start + seconds) / total, "reckoned")
    }
  })
  const axis = Object.assign(document.createElement("div"), { className: "axis" })
  find("scales").replaceChildren(ours, theirs, axis)
  ticks(axis, total)
}

function strip(title, description, paint) {
  const element = Object.assign(document.createElement("div"), { className: "plot" })
  element.append(Object.assign(document.createElement("p"), { textContent: title }))
  const svg = draw(element, "svg", { height: rows * 2, role: "img", "aria-label": `${title}. ${description}` })
  draw(svg, "rect", { class: "ground", width: "100%", height: rows * 2 })
  paint((index, from, to, name) => {
    const y = index * 2 + 1
    const line = draw(svg, "line", { class: name, x1: `${from * 100}%`, x2: `${to * 100}%`, y1: y, y2: y })
    line.style.setProperty("--dye", dye(index, rows))
  })
  return element
}

button.addEventListener("click", run)
run()
for (const one of panel.querySelectorAll("[name=pool]")) one.addEventListener("change", compare)
