// One request blocks: the fate of fifty others, and the place where the loop stood still.

import "./loop.js"
import { count } from "./numbers.js"
import { lines } from "./stream.js"
import { Timeline } from "./timeline.js"

const panel = document.getElementById("block")
const find = (name) => panel.querySelector(`[data-${name}]`)
const requests = Number(find("timeline").dataset.requests)
const timeline = new Timeline(find("timeline"), { rows: requests + 1, span: 2.5 })
const button = find("run")
const names = { wait: "flock", compute: "Ruby", hold: "The bignum" }
const chosen = (name) => panel.querySelector(`[name=${name}]:checked`).value

async function run() {
  if (button.getAttribute("aria-disabled") === "true") return
  const way = chosen("way")
  const guarded = chosen("protect") === "on"
  button.setAttribute("aria-disabled", "true")
  delete panel.dataset.ended
  for (const name of ["beside", "slowest"]) find(name).textContent = "–"
  find("status").textContent = `Sending the request that blocks, and ${requests} beside it.`
  timeline.clear()
  timeline.lines[0].group.classList.add("blocks")
  try {
    report(await follow(`/trial?way=${way}&protect=${guarded ? "on" : "off"}`), way, guarded)
  } catch (error) {
    find("status").textContent = `The trial broke off: ${error.message}.`
  } finally {
    button.removeAttribute("aria-disabled")
  }
}

// Reads the server's events and draws them. Between two events the lines grow by the page's own clock, which is set
// by the first: a server that stands still sends none.
async function follow(path) {
  const seen = { from: [], to: [], order: [], stalls: [], failed: 0, message: "", whole: false }
  let began = null
  let running = true
  const turn = () => {
    if (running && began !== null) timeline.grow((performance.now() - began) / 1000)
    if (running) requestAnimationFrame(turn)
  }
  requestAnimationFrame(turn)
  try {
    for await (const line of lines(path)) {
      const event = JSON.parse(line)
      began ??= performance.now() - event.at * 1000
      take(event, seen)
      if (event.event === "done") running = false
    }
  } finally {
    running = false
  }
  if (!seen.whole) throw new Error("the stream ended early")
  return seen
}

function take({ event, request, at, status, message, from, to, cause }, seen) {
  if (event === "start") {
    seen.from[request] = at
    timeline.start(request, at)
  } else if (event === "stall") {
    seen.stalls.push({ seconds: to - from, cause })
    timeline.shade(from, to, `The loop stood still for ${(to - from).toFixed(2)} s: ${cause}.`)
  } else if (event === "done") {
    seen.whole = true
  } else {
    const failed = event === "failed" || status !== 200
    seen.to[request] = at
    seen.order.push(request)
    timeline.end(request, at, failed)
    if (failed) {
      seen.failed += 1
      seen.message = message ?? `status ${status}`
    }
  }
}

function report({ from, to, order, stalls, failed, message }, way, guarded) {
  const beside = order.indexOf(0)
  const slowest = Math.max(...to.slice(1).map((end, index) => end - from[index + 1]))
  const stood = stalls.reduce((sum, { seconds }) => sum + seconds, 0)
  const [longest] = [...stalls].sort((one, other) => other.seconds - one.seconds)
  const blocked = to[0] - from[0]
  const still = stalls.length === 0
    ? "The loop never stood still."
    : `The loop stood still for ${stood.toFixed(2)} s${stalls.length > 1 ? `, in ${stalls.length} pieces, the longest` : ""}: ${longest.cause}.`
  const lesson = way === "hold" ? " No protection can interrupt that in one process." : ""
  const text = failed > 0
    ? `${count(failed, "request")} failed: ${message}.`
    : `${names[way]} blocked for ${blocked.toFixed(2)} s, with the protections ${guarded ? "on" : "off"}: ` +
      `${beside} of ${requests} others were answered meanwhile, and the slowest took ${slowest.toFixed(2)} s. ${still}${lesson}`
  find("beside").textContent = beside
  find("slowest").textContent = slowest.toFixed(2)
  find("status").textContent = text
  timeline.describe(text)
  Object.assign(panel.dataset, { ended: order.length, beside, failed, stalls: stalls.length })
}

timeline.lines[0].group.classList.add("blocks")
button.addEventListener("click", run)
