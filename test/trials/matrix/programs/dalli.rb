# frozen_string_literal: true

require "dalli"

shared = Dalli::Client.new(ENV.fetch("MATRIX_MEMCACHED"))
large = "x" * 500_000
got = clients do |number|
  shared.set("large-#{number}", "#{number}#{large}")
  Array.new(20) { |index| shared.set("k#{number}-#{index}", index) && shared.get("k#{number}-#{index}") } +
    [shared.get("large-#{number}")[0]]
end
proves("one client answers 8 tasks, each with its own, values of 500 kB among them",
       got == Array.new(CLIENTS) { |number| [*0...20, number.to_s] })
