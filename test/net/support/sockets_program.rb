# frozen_string_literal: true

require_relative "sockets_case"

module Heddle
  module TestHelpers
    # A server in a process of its own that responds with "x", which is asked about itself through its standard input.
    class SocketsProgram
      SERVER = <<~RUBY
        require "socket"
        require "heddle/http"
        require "heddle/net/sockets"
        Heddle::HTTP::Response # now, or the first requests would wait for it
        scheduler = Heddle::Scheduler.new
        Fiber.set_scheduler(scheduler)
        listener = TCPServer.new("127.0.0.1", 0)
        listener.listen(4096)
        set = ENV["SET"]&.to_sym
        service = Heddle::HTTP::Engine.new(Heddle::HTTP::Limits.new(head_timeout: 600))
        sockets = Heddle::Net::Sockets.new(scheduler, set:, service:) do |exchange|
          exchange.response.start(200, {}, length: 1)
          exchange.response.write_all(["x"], 1)
          exchange.response.finish
        end
        sockets.listen(listener)
        $stdout.sync = true
        puts listener.local_address.ip_port
        Fiber.schedule do
          while (question = $stdin.gets)
            answer = eval(question)
            puts answer.inspect
          end
          sockets.close
        end
        scheduler.run
      RUBY

      # @yield [SocketsProgram]
      def self.run(environment = {})
        lib = File.expand_path("../../../lib", __dir__)
        pipe = IO.popen(environment, [RbConfig.ruby, "-I#{lib}", "-e", SERVER], "r+")
        yield new(pipe)
      ensure
        pipe&.close
      end

      attr_reader :port

      def initialize(pipe)
        @pipe = pipe
        @port = Integer(pipe.gets)
      end

      # @param question [String] Ruby; it finds `scheduler` and `sockets`
      # @return what `inspect` of the answer reads back as
      def ask(question)
        @pipe.puts(question.lines(chomp: true).join("; "))
        eval(@pipe.gets) # rubocop:disable Security/Eval
      end

      # Asks until the answer is as the block wants it.
      def ask_until(question)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
        until yield (answer = ask(question))
          raise "#{question}: #{answer} still" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

          sleep 0.001
        end
      end

      def connect = TCPSocket.new("127.0.0.1", port).extend(HTTPClient)

      # Private memory in bytes, what is freed and not given back included.
      def memory = ask('GC.start; File.read("/proc/self/smaps_rollup")[/Private_Dirty:\s+(\d+)/, 1].to_i * 1024')
    end
  end
end
