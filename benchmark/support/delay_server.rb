# frozen_string_literal: true

require "net/http"

module Bench
  # The server that the HTTP clients talk to: one program for all of them, in a process of its own on the second core,
  # quick enough never to be what is measured. GET /0.05 is answered after 50 ms.
  module DelayServer
    PROGRAM = File.expand_path("delay_server_program.rb", __dir__)
    BODY = "done\n"
    # Answered with the port of a listener that is new.
    LISTENER = "/listener"
    CORE = 1
    # A run that hangs must not leave it behind; the children it serves are ended long before.
    TIME_LIMIT = 3_600

    # A sample of thousands of connections asks for a port of its own: those of the samples before stay in TIME_WAIT for
    # a minute, and who connects to the same port looks for one of its own among ever fewer.
    # @param port [Integer]
    # @return [Integer]
    def self.own_port(port) = Integer(Net::HTTP.get(URI("http://127.0.0.1:#{port}#{LISTENER}")))

    # @param program [String] the server's
    # @yieldparam port [Integer]
    def self.run(program = PROGRAM)
      child = Child.new([], program:, core: CORE, time_limit: TIME_LIMIT)
      yield child.message.fetch(:port)
    ensure
      child&.close
    end
  end
end
