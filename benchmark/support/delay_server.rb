# frozen_string_literal: true

module Bench
  # The server that the HTTP clients talk to: one program for all of them, in a process of its own on the second core,
  # quick enough never to be what is measured. GET /0.05 is answered after 50 ms.
  module DelayServer
    PROGRAM = File.expand_path("delay_server_program.rb", __dir__)
    BODY = "done\n"
    CORE = 1
    # A run that hangs must not leave it behind; the children it serves are ended long before.
    TIME_LIMIT = 3_600

    # @yieldparam port [Integer]
    def self.run
      child = Child.new([], program: PROGRAM, core: CORE, time_limit: TIME_LIMIT)
      yield child.message.fetch(:port)
    ensure
      child&.close
    end
  end
end
