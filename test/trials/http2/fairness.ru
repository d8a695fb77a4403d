# frozen_string_literal: true

SECONDS = Float(ENV.fetch("MILLISECONDS")) / 1_000

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

run lambda { |_env|
  till = now + SECONDS
  nil while now < till
  [200, { "content-type" => "text/plain" }, ["hello"]]
}
