# frozen_string_literal: true

# The server that bin/bench dns measures: each query is a task that answers with one address. For the name
# n1.8080.slow.bench.test it asks an HTTP server on that port first, which takes a second.
require "heddle"
require "heddle/net/dns"
require "net/http"

Heddle::Net::DNS.serve("127.0.0.1:#{ARGV.first}") do |query|
  port = query.name[/\.(\d+)\.slow\./, 1]
  Net::HTTP.get(URI("http://127.0.0.1:#{port}/1")) if port
  query.answer("192.0.2.1")
end
