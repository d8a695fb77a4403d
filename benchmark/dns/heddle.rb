# frozen_string_literal: true

# The server that bin/bench dns measures: each query is a task that answers with one address.
require "heddle"
require "heddle/net/dns"

Heddle::Net::DNS.serve("127.0.0.1:#{ARGV.first}") { |query| query.answer("192.0.2.1") }
