# frozen_string_literal: true

# Loaded by programs that tests start: SIGQUIT prints where each fiber and thread waits, and ends the program.
trap("QUIT") do
  fibers = ObjectSpace.each_object(Fiber).select(&:alive?)
  text = (fibers + Thread.list).map { |one| [one.inspect, *one.backtrace].join("\n  ") }.join("\n")
  Fiber.blocking { $stderr.syswrite("#{text}\n") }
  exit!(1)
end
