// The song: one long answer, shown line by line with the moment at which each came.

import { lines } from "./stream.js"
import { draw } from "./svg.js"

const panel = document.getElementById("bottles")
const find = (name) => panel.querySelector(`[data-${name}]`)
const button = find("run")
const bottles = Number(find("wall").dataset.bottles)
const columns = 33

let glasses = []
let singing = null // the AbortController of the song under way
let left = bottles

const pause = () => Number(panel.querySelector("[name=pause]:checked").value)

function buildWall() {
  const rows = Math.ceil(bottles / columns)
  find("wall").replaceChildren()
  const svg = draw(find("wall"), "svg", { viewBox: `0 0 ${columns * 10} ${rows * 30}`, role: "img" })
  const symbol = draw(draw(svg, "defs"), "path", {
    id: "bottle", d: "M3.6,0 h1.8 v6 q0,2 1.2,3.4 q.9,1 .9,2.6 v12.5 q0,1.5 -1.5,1.5 h-3 q-1.5,0 -1.5,-1.5 v-12.5 q0,-1.6 .9,-2.6 q1.2,-1.4 1.2,-3.4 z",
  })
  symbol.setAttribute("transform", "translate(0.5 0)")
  glasses = Array.from({ length: bottles }, (_, index) =>
    draw(svg, "use", { href: "#bottle", x: (index % columns) * 10, y: Math.floor(index / columns) * 30 }))
  hang(bottles)
}

// Shows so many bottles on the wall.
function hang(count) {
  left = count
  glasses.forEach((glass, index) => {
    glass.classList.toggle("taken", index >= count)
    glass.classList.toggle("passing", index === count && singing !== null)
  })
  find("wall").firstElementChild.setAttribute("aria-label", `${count} of ${bottles} bottles are on the wall.`)
}

function buildCord() {
  find("cord").replaceChildren()
  const svg = draw(find("cord"), "svg", { role: "img", "aria-label": "No line has arrived." })
  draw(svg, "line", { x1: 0, x2: "100%", y1: "50%", y2: "50%" })
  return svg
}

async function sing(from) {
  const gap = pause()
  const song = new AbortController()
  const cord = buildCord()
  const began = performance.now()
  let before = 0
  let count = 0
  singing = song
  button.textContent = "Stop the song"
  find("lines").replaceChildren()
  find("status").textContent = `Streaming from ${from} bottles, a line every ${gap} s.`
  try {
    for await (const line of lines(`/bottles?from=${from}&pause=${gap}`, { signal: song.signal })) {
      const at = (performance.now() - began) / 1000
      count += 1
      note(line, at, count === 1 ? null : at - before)
      knot(cord, at / (from * gap), count, at)
      hang(Math.max(from - count, 0))
      before = at
    }
    left = bottles
    find("status").textContent = `The song is over: ${count} lines in ${before.toFixed(2)} s.`
  } catch (error) {
    if (error.name !== "AbortError") find("status").textContent = `The song broke off: ${error.message}.`
    else if (singing === song) find("status").textContent = `Stopped after ${count} lines.`
  } finally {
    if (singing === song) {
      singing = null
      button.textContent = left < bottles ? "Go on with the song" : "Start the song"
    }
  }
}

function note(text, at, after) {
  const row = document.createElement("tr")
  for (const cell of [`${at.toFixed(3)} s`, after === null ? "–" : `${after.toFixed(3)} s`, text]) {
    row.append(Object.assign(document.createElement("td"), { textContent: cell }))
  }
  find("lines").prepend(row)
}

function knot(cord, share, count, at) {
  draw(cord, "circle", { cx: `${Math.min(share, 1) * 100}%`, cy: "50%", r: 3 })
  cord.setAttribute("aria-label", `${count} lines have arrived in ${at.toFixed(1)} s.`)
}

buildWall()
buildCord()

button.addEventListener("click", () => {
  if (singing) singing.abort()
  else sing(left)
})

// A change of speed goes on from the bottle that the song has reached.
for (const choice of panel.querySelectorAll("[name=pause]")) {
  choice.addEventListener("change", () => {
    if (!singing) return
    const song = singing
    singing = null
    song.abort()
    sing(Math.max(left, 1))
  })
}
