// The crowd: many clients of the server that ask as often as they can, in a process of their own.

import { count, duration, grouped } from "./numbers.js"
import { lines } from "./stream.js"

const panel = document.getElementById("live")
const find = (name) => panel.querySelector(`[data-${name}]`)
const button = find("run")

async function send() {
  if (button.getAttribute("aria-disabled") === "true") return
  const clients = Number(panel.querySelector("[name=crowd]:checked").value)
  button.setAttribute("aria-disabled", "true")
  find("status").textContent = `A process of its own asks for /hello, over ${count(clients, "connection")}.`
  let outcome = null
  try {
    for await (const line of lines(`/burst?clients=${clients}`)) {
      const sample = JSON.parse(line)
      if (sample.event === "done") outcome = sample
      else if (sample.at > 0) find("status").textContent = `${count(clients, "client")}: ${grouped.format(sample.answers)} answers in ${sample.at.toFixed(1)} s.`
    }
    if (!outcome) throw new Error("it ended before its time")
    report(outcome)
  } catch (error) {
    find("status").textContent = `The crowd broke up: ${error.message}.`
  } finally {
    button.removeAttribute("aria-disabled")
  }
}

function report({ clients, answers, seconds, median, p99, failed, message }) {
  const rate = Math.round(answers / seconds)
  const failures = failed > 0 ? ` ${count(failed, "client")} failed: ${message}.` : " None failed."
  find("status").textContent =
    `${count(clients, "client")} got ${grouped.format(answers)} answers in ${seconds.toFixed(1)} s: ` +
    `${grouped.format(rate)} a second on this machine, which the clients share.${failures} ` +
    `As they saw it, waiting included, half took less than ${duration(median)}, 99 of 100 less than ${duration(p99)}.`
  panel.dataset.rate = rate
  panel.dataset.failed = failed
}

button.addEventListener("click", send)
