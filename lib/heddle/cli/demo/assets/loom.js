// The warp behind the name: a strand for each request, lifted while the request is under way.

import { calm, draw, dye } from "./shared.js"

const HEIGHT = 62 // how far the outermost strands part, in the drawing's units
const STIFFNESS = 0.14 // the share of the way that a strand moves in a frame of 1/60 s

const group = document.querySelector("[data-strands]")
let strands = []
let moving = false
let last = 0

// Makes as many strands as there will be requests. They lie together until they are lifted.
export function warp(count) {
  group.replaceChildren()
  strands = Array.from({ length: count }, (_, index) => {
    const path = draw(group, "path", { class: "strand", d: shape(0) })
    path.style.setProperty("--dye", dye(index, count))
    return { path, height: HEIGHT * (1 - (2 * index) / (count - 1)), at: 0, to: 0 }
  })
}

export function lift(index) { move(index, 1) }

export function lower(index) { move(index, 0) }

function move(index, to) {
  if (!strands[index]) return
  strands[index].to = to
  if (!moving) {
    moving = true
    last = performance.now()
    requestAnimationFrame(turn)
  }
}

function turn(time) {
  const share = calm.matches ? 1 : 1 - (1 - STIFFNESS) ** Math.min((time - last) / 16.7, 10)
  last = time
  moving = false
  for (const strand of strands) {
    if (strand.at === strand.to) continue
    strand.at += (strand.to - strand.at) * share
    if (Math.abs(strand.to - strand.at) < 0.004) strand.at = strand.to
    else moving = true
    strand.path.setAttribute("d", shape(strand.at * strand.height))
  }
  if (moving) requestAnimationFrame(turn)
}

function shape(height) {
  const top = (50 - height * 1.333).toFixed(2)
  return `M0,50 C260,50 180,${top} 500,${top} S740,50 1000,50`
}
