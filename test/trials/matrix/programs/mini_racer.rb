# frozen_string_literal: true

require "mini_racer"

got = clients do |number|
  context = MiniRacer::Context.new
  context.attach("ask", ->(value) { sleep(0.001) && (value + number) })
  context.eval("[1, 2, 3].map((value) => ask(value)).join()")
ensure
  context&.dispose
end
proves("8 contexts call Ruby functions that wait, each gets its own answer",
       got == Array.new(CLIENTS) { |number| "#{1 + number},#{2 + number},#{3 + number}" })

# A context excludes other threads while it runs: so it must other tasks.
shared = MiniRacer::Context.new
shared.attach("wait", ->(number) { sleep(0.001) && number })
shared.eval("let running = 0; function run(number) { running++; const own = wait(number); " \
            "const found = [own, running]; running--; return found.join(); }")
got = clients { |number| shared.call("run", number) }
proves("one context serves 8 tasks, one at a time", got == Array.new(CLIENTS) { |number| "#{number},1" })
