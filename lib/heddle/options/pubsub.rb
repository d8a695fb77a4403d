# frozen_string_literal: true

module Heddle
  module Options
    # Options of the history of Heddle::PubSub.
    PUBSUB = [
      Option.new(name: :pubsub, unit: :url, default: "memory",
                 example: 'pubsub "redis://localhost:6379/1"',
                 text: "where the messages of Heddle::PubSub are kept: memory (of this server only), or the URL of a " \
                       "Redis or PostgreSQL that several servers share",
                 reason: "Set it when several servers share topics",
                 details: "`redis://`, `rediss://`, `postgres://` or `postgresql://`: all servers with this URL " \
                          "share their topics. If several applications share one Redis or PostgreSQL, append a name " \
                          "for each application, such as `?name=shop`. The stream in Redis gets this name, or the " \
                          "tables and the channel in PostgreSQL. The option needs the gem redis-client or pg. See " \
                          "[Pub/sub](pubsub.md#several-machines)."),
      Option.new(name: :pubsub_memory, unit: :bytes, default: 16 << 20, range: (64 << 10)..(1 << 30),
                 example: 'pubsub_memory "64m"',
                 text: "memory for messages of Heddle::PubSub, shared by all processes of the server",
                 reason: "Raise it when reconnecting subscribers have missed messages that are no longer stored, or " \
                         "for more than 16,384 topics",
                 details: "The size is rounded up to a power of two. A message may use a quarter of it. Each KiB " \
                          "stores the last position of one topic. Unused memory costs nothing. See " \
                          "[Pub/sub](pubsub.md)."),
      Option.new(name: :pubsub_history, unit: :count, default: 100, range: 0..1000,
                 text: "maximum number of missed messages of a topic that a reconnecting subscriber gets",
                 reason: "Raise it when a topic has more messages while a client reconnects",
                 details: "The subscriber gets fewer if pubsub_memory has no room for them, and none that is older " \
                          "than a day. A subscriber that has missed more messages gets a reset.")
    ].freeze
  end
end
