# frozen_string_literal: true

# What Request Store and Rails' CurrentAttributes keep for a request, without the middleware that clears it.

require "request_store"

run(lambda do |env|
  seen = RequestStore[:user]
  RequestStore[:user] = env["QUERY_STRING"]
  sleep 0.05
  [200, {}, ["#{seen}#{RequestStore[:user]}"]]
end)
