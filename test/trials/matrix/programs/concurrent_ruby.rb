# frozen_string_literal: true

require "concurrent"

lock = Concurrent::ReentrantReadWriteLock.new
inside = most = 0
clients do
  lock.with_write_lock do
    most = [most, inside += 1].max
    sleep 0.001
    inside -= 1
  end
end
proves("a ReentrantReadWriteLock lets one task in at a time", most == 1)
got = clients { |number| Concurrent::Promises.future(number) { |value| sleep(0.001) && (value * 2) }.value! }
proves("8 tasks wait for futures of a thread pool", got == Array.new(CLIENTS) { |number| number * 2 })
local = Concurrent::ThreadLocalVar.new
seen = clients { |number| (local.value = number) && sleep(0.001) && local.value }
puts "noted: a ThreadLocalVar is #{seen == [*0...CLIENTS] ? "each task's own" : "shared by the tasks of a thread"}"
