// A canvas whose right edge is now, and which moves to the left as time passes.

import { calm } from "./shared.js"

const dark = matchMedia("(prefers-color-scheme: dark)")

export class Strip {
  // span: the seconds that it shows; paint: called with the strip and the time to draw it anew
  constructor(canvas, { span, clock, paint }) {
    Object.assign(this, { canvas, span, clock, paint, seen: false, live: false, moving: false })
    this.context = canvas.getContext("2d")
    new ResizeObserver(() => this.fit()).observe(canvas)
    new IntersectionObserver(([entry]) => {
      this.seen = entry.isIntersecting
      this.move()
    }).observe(canvas)
    dark.addEventListener("change", () => this.fit())
  }

  fit() {
    const style = getComputedStyle(this.canvas)
    this.colours = Object.fromEntries(["faded", "rule", "indigo", "madder"]
      .map((name) => [name, style.getPropertyValue(`--${name}`).trim()]))
    this.font = `400 12px ${style.getPropertyValue("--mono")}`
    this.density = window.devicePixelRatio || 1
    this.width = this.canvas.clientWidth
    this.height = this.canvas.clientHeight
    this.canvas.width = Math.round(this.width * this.density)
    this.canvas.height = Math.round(this.height * this.density)
    this.draw()
  }

  draw() {
    if (!this.width) return
    const { context, density } = this
    context.setTransform(density, 0, 0, density, 0, 0)
    context.clearRect(0, 0, this.width, this.height)
    context.font = this.font
    context.lineJoin = "round"
    this.paint(this, this.clock())
  }

  // Draws frame after frame while the strip is seen and samples come.
  move() {
    if (this.moving || !this.seen || !this.live || calm.matches) return
    this.moving = true
    requestAnimationFrame(() => {
      this.moving = false
      this.draw()
      this.move()
    })
  }

  // A sample has arrived, or the server has gone.
  update(live) {
    this.live = live
    if (!this.moving) this.draw()
    this.move()
  }

  x(at, now) {
    return this.width * (1 - (now - at) / this.span)
  }

  // A line across, and its label.
  rule(y, text) {
    const { context, colours } = this
    const middle = Math.round(y) + 0.5
    context.strokeStyle = colours.rule
    context.lineWidth = 1
    context.beginPath()
    context.moveTo(0, middle)
    context.lineTo(this.width, middle)
    context.stroke()
    context.fillStyle = colours.faded
    context.fillText(text, 0, middle - 5)
  }
}
