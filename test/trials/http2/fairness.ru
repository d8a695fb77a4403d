# frozen_string_literal: true

SECONDS = Float(ENV.fetch("MILLISECONDS")) / 1_000
# Where the clients read how many requests of the busy one have begun: 8 bytes.
BEGUN = File.open(ENV.fetch("BEGUN"), "r+b")
begun = 0

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

run lambda { |env|
  BEGUN.pwrite([begun += 1].pack("Q"), 0) if env["PATH_INFO"] == "/busy"
  body = begun.to_s
  till = now + SECONDS
  nil while now < till
  [200, { "content-type" => "text/plain" }, [body]]
}
