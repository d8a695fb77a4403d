# frozen_string_literal: true

require "socket"
require_relative "answer_reader"

module Conformance
  # One connection to the server.
  class Client
    # Seconds after which an answer is taken to be missing.
    attr_writer :patience
    # @return [TCPSocket]
    attr_reader :socket

    def initialize(port, patience)
      @socket = TCPSocket.new("127.0.0.1", port)
      @socket.setsockopt(:TCP, :NODELAY, true)
      @patience = patience
    end

    def send_at_once(bytes) = @socket.write(bytes)

    # Each byte in a packet of its own, and the server's thread has a chance to see it alone.
    def send_byte_by_byte(bytes)
      bytes.each_byte do |byte|
        @socket.write(byte.chr)
        Thread.pass
      end
    end

    # @return [Answer, nil] nil at the end of the connection
    def answer(method = "GET") = reader.read(method)

    # @return [String] all bytes up to the end of the connection
    def rest = reader.rest

    # @return [Boolean] whether there is neither an end of the connection nor a byte
    def quiet?(seconds = 0) = !@socket.wait_readable(seconds)

    def close_write = @socket.close_write

    # Ends the connection as the system does for a client that crashes.
    def reset
      @socket.setsockopt(Socket::Option.linger(true, 0))
      @socket.close
    end

    def close = @socket.close

    private

    def reader = @reader ||= AnswerReader.new(@socket, @patience)
  end
end
