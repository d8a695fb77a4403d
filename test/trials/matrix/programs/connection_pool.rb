# frozen_string_literal: true

require "connection_pool"

made = 0
pool = ConnectionPool.new(size: 4, timeout: 30) { made += 1 }
most = held = 0
meeting = 0
got = clients do
  pool.with do |object|
    most = [most, held += 1].max
    meeting += 1
    sleep 0.001 until meeting >= 4
    held -= 1
    object
  end
end
proves("4 objects serve 8 tasks, one task each at a time", most == 4 && got.uniq.sort == [1, 2, 3, 4])
nested = clients { pool.with { |outer| pool.with { |inner| outer == inner } } }
proves("a nested check-out in one task gets the same object", nested.all?)
