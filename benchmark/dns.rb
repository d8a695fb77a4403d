# frozen_string_literal: true

# bin/bench dns: DNS servers under dnsperf, each with one static answer.

require_relative "support/bench"

exit(Bench::Command.run("dns", ARGV))
