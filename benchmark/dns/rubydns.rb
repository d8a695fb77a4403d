# frozen_string_literal: true

# The same in RubyDNS, as its guide has it.
require "net/http"
require "rubydns"

Console.logger.off!
port = Integer(ARGV.first)
endpoint = IO::Endpoint.composite(IO::Endpoint.udp("127.0.0.1", port), IO::Endpoint.tcp("127.0.0.1", port))
RubyDNS.run(endpoint) do
  match(/\.(\d+)\.slow\.bench\.test\z/, Resolv::DNS::Resource::IN::A) do |transaction, match|
    Net::HTTP.get(URI("http://127.0.0.1:#{match[1]}/1"))
    transaction.respond!("192.0.2.1")
  end
  match(/\.bench\.test\z/, Resolv::DNS::Resource::IN::A) { |transaction| transaction.respond!("192.0.2.1") }
end
