# frozen_string_literal: true

require "net/http"
require_relative "../http/native"

module Bench
  # The server that the HTTP clients talk to: one program in C for all of them, in a process of its own on the second
  # core, quick enough never to be what is measured. GET /0.05 is answered after 50 ms.
  module DelayServer
    BODY = "done\n"
    # Answered with the port of a listener that is new.
    LISTENER = "/listener"
    CORE = 1

    # A sample of thousands of connections asks for a port of its own: those of the samples before stay in TIME_WAIT for
    # a minute, and a client of the same port looks for one of its own among ever fewer.
    # @param port [Integer]
    # @return [Integer]
    def self.own_port(port) = Integer(Net::HTTP.get(URI("http://127.0.0.1:#{port}#{LISTENER}")))

    # @yieldparam port [Integer]
    def self.run
      HTTP::Native.converse(*Child.pin(CORE), HTTP::Native.program("delayed")) { |said, _| yield said.call.fetch(:port) }
    end
  end
end
