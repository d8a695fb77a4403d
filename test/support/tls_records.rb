# frozen_string_literal: true

require "openssl"
require "socket"

# A client that sends its records of TLS as a test cuts them, all in one piece.
class TLSRecords
  # @return [OpenSSL::SSL::SSLSocket] what it reads from
  attr_reader :client

  # @param socket [IO] connected to the server
  # @param settings [Hash] of its SSLContext
  def initialize(socket, **settings)
    @socket = socket
    inner, @outer = UNIXSocket.pair
    context = OpenSSL::SSL::SSLContext.new
    context.set_params(verify_mode: OpenSSL::SSL::VERIFY_NONE, **settings)
    @client = OpenSSL::SSL::SSLSocket.new(inner, context)
    @client.sync_close = true
  end

  def connect
    receive
    until @client.connect_nonblock(exception: false) == @client
      send_records
      @client.to_io.wait_readable
    end
    send_records
    self
  end

  # Sends each byte in a record of its own.
  def write_bytes(text)
    records = text.each_char.map do |byte|
      @client.syswrite(byte)
      @outer.readpartial(1_000)
    end
    @socket.write(records.join)
  end

  # Begins the handshake with records of one byte.
  def begin_handshake_in_bytes
    @client.connect_nonblock(exception: false)
    hello = @outer.readpartial(65_536)
    @socket.write(hello[5..].each_char.map { |byte| "\x16\x03\x01\x00\x01".b + byte }.join)
  end

  def close
    @receiving&.kill&.join
    [@client, @outer, @socket].each(&:close)
  end

  private

  def send_records
    records = @outer.read_nonblock(65_536, exception: false)
    @socket.write(records) unless records == :wait_readable
  end

  def receive
    @receiving = Thread.new do
      loop { @outer.write(@socket.readpartial(65_536)) }
    rescue IOError, SystemCallError
      @outer.close_write
    end
  end
end
