# frozen_string_literal: true

require "net/http"
require "socket"

module Bench
  module Modes
    # What an application does in each row of bin/bench modes: it computes, reads a file, or asks another server.
    class Application
      HELLO = "Hello, world!\n"
      # Some milliseconds of Ruby.
      NUMBER = 20
      # What is read: a file of everyday size.
      FILE = __FILE__
      DELAY = 0.1 # seconds that the other server takes

      # @param env [Hash] Rack's
      # @return [Array(Integer, Hash, Array)]
      def call(env)
        case env["PATH_INFO"]
        when "/hello" then text(HELLO)
        when "/cpu" then text("#{fibonacci(NUMBER)}\n")
        when "/file" then text(File.read(FILE))
        when %r{\A/http/(\d+)\z} then text(ask(Integer(Regexp.last_match(1))))
        else [404, { "content-type" => "text/plain" }, ["not found\n"]]
        end
      end

      private

      def fibonacci(number) = number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2)

      # Net::HTTP has constants that no Ractor but the main one can read.
      def ask(port)
        return Net::HTTP.get("127.0.0.1", "/#{DELAY}", port) if Ractor.current == Ractor.main

        TCPSocket.open("127.0.0.1", port) do |socket|
          socket.write("GET /#{DELAY} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
          socket.read(socket.gets("\r\n\r\n")[/^content-length: (\d+)/i, 1].to_i)
        end
      end

      def text(body) = [200, { "content-type" => "text/plain" }, [body]]
    end
  end
end
