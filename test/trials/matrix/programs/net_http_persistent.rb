# frozen_string_literal: true

require "net/http/persistent"

client = Net::HTTP::Persistent.new(name: "matrix", pool_size: CLIENTS)
proves_together("net-http-persistent") { |url| client.request(URI(url)).body }
puts "noted: a response that is cut off looks whole"
proves_abandoned { |url| client.request(URI(url)).body }
