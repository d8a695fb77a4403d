// Reading an answer while it is being written, and knowing whether any panel is at work.

// The lines of the answer to a GET, each as soon as it is whole.
export async function* lines(path, options = {}) {
  const answer = await fetch(path, options)
  if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).trim()}`)
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const pieces = (rest + value).split("\n")
    rest = pieces.pop()
    yield* pieces
  }
  if (rest) yield rest
}

let panelsAtWork = 0

// Says that a panel is at work, until the function that it returns is called.
export function busy() {
  panelsAtWork += 1
  return () => { panelsAtWork -= 1 }
}

export const anyBusy = () => panelsAtWork > 0
