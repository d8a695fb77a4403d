# frozen_string_literal: true

module Heddle
  module TestHelpers
    # A client of HTTP/1.1: a module for its socket, plain or TLS. It uses no Heddle.
    module HTTPClient
      # Sends a request.
      # @param text [String] the path
      # @param body [String, nil]
      # @return [self]
      def ask(text = "x", body: nil)
        write(HTTPClient.request(text, body:))
        self
      end

      # @return [String, nil] the content of the next response; nil when the server has ended its side
      def answer
        head = gets("\r\n\r\n") or return
        @status = head[/ (\d+) /, 1].to_i
        read(head[/^content-length: (\d+)/i, 1].to_i)
      end

      # @return [Boolean] whether the server has closed the connection without a response
      def cut_off?
        answer.nil?
      rescue Errno::ECONNRESET, Errno::EPIPE
        true
      end

      # @return [Integer] the status of the last response
      attr_reader :status

      def self.request(text = "x", body: nil)
        return "GET /#{text} HTTP/1.1\r\nHost: a\r\n\r\n" unless body

        "POST /#{text} HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
      end
    end
  end
end
