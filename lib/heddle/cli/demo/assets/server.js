// The server's own facts, as its pulse brings them.

import { follow } from "./pulse.js"
import { draw } from "./svg.js"

const panel = document.getElementById("server")
const find = (name) => panel.querySelector(`[data-${name}]`)
const WINDOW = 60 // seconds that the drawing shows
const samples = [] // { at, fibers }
let updates = 0

find("spark").replaceChildren()
const svg = draw(find("spark"), "svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img" })
const under = draw(svg, "path", { class: "under" })
const line = draw(svg, "path")

const shown = {
  heddle: (facts) => facts.heddle,
  ruby: (facts) => [facts.ruby, facts.jit].filter(Boolean).join(" with "),
  selector: (facts) => facts.selector,
  fibers: (facts) => facts.fibers,
  threads: (facts) => facts.threads,
  memory: (facts) => facts.memory && `${(facts.memory / 1048576).toFixed(1)} MB`,
  pid: (facts) => facts.pid,
  uptime: (facts) => duration(facts.uptime),
  protocol: () => arrival(),
}

// As the browser has seen it: by the name that TLS agreed on (ALPN).
function arrival() {
  const name = performance.getEntriesByType("navigation")[0]?.nextHopProtocol
  const version = { h2: "HTTP/2", "http/1.1": "HTTP/1.1" }[name] ?? name
  return version && `${version}${location.protocol === "https:" ? " over TLS" : ""}`
}

function duration(seconds) {
  const whole = Math.floor(seconds)
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60]
  return parts.map((part) => String(part).padStart(2, "0")).join(":")
}

function take(sample) {
  if (sample === null) {
    find("status").textContent = "The server does not answer. Trying again."
    return
  }
  if (sample.facts) write(sample.facts)
  if (sample.fibers === undefined) return
  updates += 1
  panel.querySelector("[data-fact=fibers]").textContent = sample.fibers
  plot(sample.fibers)
  find("status").textContent = `Updated ${updates} times.`
  panel.dataset.updates = updates
}

function write(facts) {
  for (const [name, say] of Object.entries(shown)) {
    panel.querySelector(`[data-fact="${name}"]`).textContent = say(facts) ?? "unknown"
  }
}

function plot(fibers) {
  const now = performance.now() / 1000
  samples.push({ at: now, fibers })
  while (samples[0].at < now - WINDOW) samples.shift()
  const most = Math.max(...samples.map((sample) => sample.fibers))
  const points = samples.map(({ at, fibers: count }) =>
    `${(100 - ((now - at) / WINDOW) * 100).toFixed(2)},${(100 - (count / Math.max(most, 1)) * 100).toFixed(2)}`)
  line.setAttribute("d", `M${points.join(" L")}`)
  under.setAttribute("d", `M${points[0].split(",")[0]},100 L${points.join(" L")} L100,100 Z`)
  find("most").textContent = `at most ${most}`
  svg.setAttribute("aria-label", `At most ${most} fibers were alive in the last minute; now ${fibers}.`)
}

follow(take)
