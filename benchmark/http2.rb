# frozen_string_literal: true

# bin/bench http2: HTTP/2 of Heddle's server beside other servers, in plain text and over TLS. See
# docs/benchmarks/http2.md.

require_relative "support/bench"

exit(Bench::Command.run("http2", ARGV))
