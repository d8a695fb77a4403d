# frozen_string_literal: true

# Reads the events of one stream over HTTP/1.1.
class EventStreamClient
  # Seconds that an event may take.
  PATIENCE = 60

  attr_reader :head

  # @param socket [IO] a connection of its own
  def initialize(socket, path, headers = "", version: "1.1")
    @socket = socket
    @socket.timeout = PATIENCE if @socket.respond_to?(:timeout=)
    @socket.write("GET #{path} HTTP/#{version}\r\nHost: a\r\n#{headers}\r\n")
    @head = @socket.gets("\r\n\r\n")
    @chunked = @head.include?("transfer-encoding: chunked")
    @text = +""
  end

  # @return [Hash{String => String}, nil] the fields of the next event; nil: the stream has ended
  def event
    fill until (ending = @text.index("\n\n")) || @ended
    return unless ending

    lines = @text.slice!(0, ending + 2).split("\n").map { |line| line.split(": ", 2) }
    lines.group_by(&:first).transform_values { |all| all.map { |one| one[1] }.join("\n") }
  end

  def send_bytes(bytes) = @socket.write(bytes)

  def close = @socket.close

  # Without closing: the client's side of the connection is over.
  def leave = @socket.shutdown(Socket::SHUT_WR)

  private

  def fill
    return @text << @socket.readpartial(65_536) unless @chunked

    size = @socket.readline.to_i(16)
    @text << @socket.read(size).to_s
    @socket.read(2)
    @ended = size.zero?
  rescue EOFError, SystemCallError
    @ended = true
  end
end
