# frozen_string_literal: true

# The rooms of the C extension, that is the folders of ext/heddle, each with those that it may include from. A room may
# use its own files; its list names rooms further up in this table only. docs/design.md explains the layers.
module Layers
  BASE = %w[scheduler selector].freeze
  HTTP = ["http", "http/body", "pubsub", "net", *BASE].freeze

  ROOMS = {
    "native_code" => %w[],
    "selector" => %w[],
    "scheduler" => %w[native_code selector],
    "watch" => ["native_code", *BASE],
    "offload" => ["native_code", *BASE],
    "preempt" => ["watch", *BASE],
    "processes" => %w[],
    "concurrency" => BASE,
    "net" => ["watch", *BASE],
    "pubsub" => ["net", *BASE],
    "http/websocket" => %w[],
    "http/body" => ["net", *BASE],
    "http" => ["http/body", "http/websocket", "pubsub", "net", *BASE],
    "http/h2" => %w[http selector],
    "http/log" => ["http/websocket", *HTTP],
    "http/h1" => %w[http],
    "http/h1/server" => ["http/h1", "http/h2", *HTTP],
    "http/h1/client" => ["http/h1", "http", "net", *BASE],
    "http/h2/server" => ["http/h2", *HTTP],
    "http/h2/client" => ["http/h2", *HTTP],
    "http/push" => ["http/h1/server", "http/h2/server", "http/h2", "http/websocket", *HTTP],
    "cable" => ["http/push", "http/websocket", *HTTP],
    "rack" => %w[http net scheduler]
  }.freeze

  # Files that put the parts together, and so include from rooms above their own.
  ASSEMBLY = %w[heddle http/http_ruby].freeze

  # @return [Boolean] may this file, such as "http/engine", not include from the other room?
  def self.up?(file, other)
    room = File.dirname(file)
    other != room && !ASSEMBLY.include?(file) && !ROOMS.fetch(room).include?(other)
  end
end
