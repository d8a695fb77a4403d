# frozen_string_literal: true

require "json"
require "socket"
require "websocket/driver"

# A client of Action Cable, by the library for web sockets that Rails uses itself.
class CableClient
  PATIENCE = 60 # seconds
  private_constant :PATIENCE

  # @return [String] for the library
  attr_reader :url

  # @param uri [URI] of the server
  def initialize(uri)
    @url = "ws://#{uri.host}:#{uri.port}/cable"
    @socket = TCPSocket.new(uri.host, uri.port)
    @received = []
    @open = @closed = false
    @driver = WebSocket::Driver.client(self, protocols: ["actioncable-v1-json"])
    @driver.on(:open) { @open = true }
    @driver.on(:message) { |event| @received << JSON.parse(event.data) }
    @driver.on(:close) { @closed = true }
    @driver.start
    wait_until("no web socket") { @open }
  end

  # For the library.
  def write(data) = @socket.write(data)

  # @param channel [String]
  def subscribe(channel)
    command("subscribe", channel)
    message { |one| one["type"] == "confirm_subscription" }
  end

  # @param channel [String]
  # @param action [String]
  def perform(channel, action) = command("message", channel, data: JSON.generate({ action: }))

  # @return [Hash] the first message that the block wants
  def message(&wanted)
    found = nil
    wait_until("no such message among #{@received}") { found = @received.find(&wanted) }
    found
  end

  # Says goodbye and waits for the answer.
  def leave
    @driver.close
    wait_until("no goodbye") { @closed }
  end

  # Waits until the server has said goodbye.
  def await_close = wait_until("no goodbye") { @closed }

  def close = @socket.close

  private

  def command(name, channel, **more)
    @driver.text(JSON.generate({ command: name, identifier: JSON.generate({ channel: }), **more }))
  end

  def wait_until(message)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      raise message unless left > 0 && @socket.wait_readable(left)

      @driver.parse(@socket.readpartial(65_536))
    end
  end
end
