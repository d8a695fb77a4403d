# frozen_string_literal: true

require "socket"
require "zlib"

module Heddle
  module TestHelpers
    # A server whose responses are mutations of right ones, and requests to it. Each request has a response that is its
    # own or an error of the client, and the next one has its own body, whatever bytes the server has sent before.
    class FuzzedResponses
      BODY = "0123456789" * 20
      FIELDS = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
      GZIP = Zlib.gzip(BODY)
      SEEDS = [
        "#{FIELDS}Content-Length: 200\r\n\r\n#{BODY}",
        "#{FIELDS}Transfer-Encoding: chunked\r\n\r\nc8;a=b\r\n#{BODY}\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n#{FIELDS}Content-Length: 200\r\n\r\n#{BODY}",
        "HTTP/1.1 204 No Content\r\nX-Long: #{"a" * 300}\r\n\r\n",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n#{BODY}",
        "#{FIELDS}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
      ].map(&:b).push("#{FIELDS}Content-Encoding: gzip\r\nContent-Length: #{GZIP.bytesize}\r\n\r\n".b + GZIP).freeze
      WORDS = ["\r\n", "\n", "\r", " ", "0", "-1", "ffffffffffffffff", "18446744073709551616", "chunked", "gzip, gzip",
               ",", ";", ":", "\0", "\x7f", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n",
               "Connection: close\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"].map(&:b).freeze
      # Seconds that the server waits for another request, and the client for bytes.
      PAUSE = 0.05
      # Of a response that is whole, on a machine that is busy.
      PATIENCE = { total: 60, read: 60, first_byte: 60 }.freeze
      private_constant :BODY, :FIELDS, :GZIP, :SEEDS, :WORDS, :PAUSE, :PATIENCE

      # @param seed [Integer]
      def initialize(seed)
        @random = Random.new(seed)
        @listener = TCPServer.new("127.0.0.1", 0)
        @thread = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
        @thread.report_on_exception = false
      end

      # @param count [Integer]
      # @return [Hash{String => Integer}] statuses and errors, and how often
      # @raise [RuntimeError] for what is neither; with the bytes of the response
      def run(count)
        timeout = { total: 5, read: PAUSE * 4, first_byte: PAUSE * 4 }
        url = "http://127.0.0.1:#{@listener.addr[1]}"
        client = HTTP::Client.new(url, proxy: nil, redirects: 0, retries: 0, timeout:)
        Array.new(count) { ask(client, mutation) }.tally
      end

      def close
        @thread.kill
        @listener.close
      end

      private

      def mutation
        bytes = SEEDS.sample(random: @random).dup
        @random.rand(0..3).times do
          at = @random.rand(bytes.bytesize + 1)
          case @random.rand(5)
          when 0 then bytes.insert(at, WORDS.sample(random: @random))
          when 1 then bytes.slice!(at, @random.rand(1..12))
          when 2 then bytes.insert(at, bytes.byteslice(at, @random.rand(1..40)).to_s)
          when 3 then bytes.setbyte(at - 1, @random.rand(256)) if at > 0
          else bytes.slice!(at..) if @random.rand(4) == 0
          end
        end
        bytes
      end

      def ask(client, bytes)
        @bytes = bytes
        seen = begin
          client.get("/mutated").status.to_s
        rescue HTTP::Client::Error => e
          e.class.name[/\w+\z/]
        end
        own = "/own/#{@random.rand(1_000_000)}"
        body = client.get(own, timeout: PATIENCE).body
        raise "#{own} has the response #{body.inspect}" unless body == own

        seen
      rescue StandardError => e
        raise "after #{bytes.inspect}: #{e.class}: #{e.message}"
      end

      def serve(socket)
        while socket.wait_readable(PAUSE) && (target = socket.gets("\r\n\r\n")&.slice(/ (\S+)/, 1))
          own = "HTTP/1.1 200 OK\r\nContent-Length: #{target.size}\r\n\r\n#{target}"
          socket.write(target == "/mutated" ? @bytes : own)
        end
      rescue SystemCallError
        nil # the client has closed it
      ensure
        socket.close
      end
    end
  end
end
