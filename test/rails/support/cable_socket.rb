# frozen_string_literal: true

require "heddle"
require "json"

# A client of Action Cable: its commands, and what comes.
class CableSocket
  PATIENCE = 60 # seconds
  private_constant :PATIENCE

  # @param channel [String]
  # @return [String]
  def self.identifier(channel, **params) = JSON.generate({ channel:, **params })

  # @return [Heddle::WebSocket::ClientSocket]
  attr_reader :socket

  # @param uri [URI] of the server
  # @param name [String, nil] who connects; nil: nobody whom the application knows
  # @param extended [Boolean] whether positions are asked for
  def initialize(uri, name: "ada", extended: false, origin: uri.to_s.chomp("/"), path: "/cable")
    protocols = extended ? %w[actioncable-v1-ext-json actioncable-v1-json] : %w[actioncable-v1-json]
    @socket = Heddle::WebSocket.connect("ws://#{uri.host}:#{uri.port}#{path}?#{"name=#{name}" if name}",
                                        protocols:, headers: { "origin" => origin }.compact, timeout: PATIENCE)
  end

  # @return [Hash, nil] the next message that is no ping; nil: the socket has ended
  def read
    while (text = @socket.read(timeout: PATIENCE))
      message = JSON.parse(text)
      return message unless message["type"] == "ping"
    end
  end

  # @return [Hash] the next ping
  def ping
    while (text = @socket.read(timeout: PATIENCE))
      message = JSON.parse(text)
      return message if message["type"] == "ping"
    end
  end

  # @param name [String] of a command
  def command(name, identifier = nil, **more)
    @socket.write(JSON.generate({ command: name, identifier:, **more }.compact))
  end

  # @return [Hash] the server's answer
  def subscribe(identifier, **more)
    command("subscribe", identifier, **more)
    read
  end

  # @param action [String]
  def perform(identifier, action, **data) = command("message", identifier, data: JSON.generate({ action:, **data }))

  # @return [void]
  def close = @socket.close
end
