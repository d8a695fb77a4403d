# frozen_string_literal: true

require "concurrency/support/private_server"
require "support/free_port"

# A Redis for tests: on a port and a unix socket of its own, with its data in a temporary folder.
class PrivateRedis < PrivateServer
  # It confirms what is on the disk.
  DURABLE = %w[--appendonly yes --appendfsync always].freeze
  FORGETFUL = %w[--appendonly no].freeze

  # @param program [String]
  # @param storage [Array<String>] options
  def initialize(program, storage = DURABLE)
    @port = FreePort.find
    super("redis.sock") do |folder|
      [program, "--port", @port.to_s, "--bind", "127.0.0.1", "--unixsocket", File.join(folder, "redis.sock"),
       "--dir", folder, "--save", "", *storage]
    end
  end

  # @return [Integer]
  attr_reader :port

  # @return [String]
  def url = "redis://127.0.0.1:#{port}/0"

  # @return [RedisClient]
  def connect = RedisClient.config(path: File.join(folder, "redis.sock")).new_client

  # Ends those of all other clients.
  # @return [void]
  def cut_connections
    connect.tap { |redis| redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }.close
  end
end
