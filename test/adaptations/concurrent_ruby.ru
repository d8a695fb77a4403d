# frozen_string_literal: true

require "concurrent"

TENANT = Concurrent::ThreadLocalVar.new("none")
OF_FIBER = Concurrent::FiberLocalVar.new("none")
LISTS = [Concurrent::ThreadLocalVar, Concurrent::FiberLocalVar].map { |type| type.const_get(:LOCALS) }

run(lambda do |env|
  if env["PATH_INFO"] == "/kept"
    GC.start
    next [200, {}, [LISTS.sum { |list| list.instance_variable_get(:@all_arrays).size }.to_s]]
  end

  own = env["QUERY_STRING"]
  before = [TENANT.value, OF_FIBER.value]
  TENANT.value = OF_FIBER.value = own
  sleep 0.02
  seen = [TENANT.value, OF_FIBER.value, Enumerator.new { |all| all << TENANT.value }.next]
  TENANT.bind("bound") { seen << TENANT.value }
  [200, {}, [[*before, *seen, Thread.new { TENANT.value }.value].join(" ")]]
end)
