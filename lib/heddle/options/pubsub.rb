# frozen_string_literal: true

module Heddle
  module Options
    # Options of Heddle::PubSub.
    PUBSUB = [
      Option.new(name: :pubsub, unit: :url, default: "memory",
                 example: 'pubsub "redis://localhost:6379/1"',
                 text: "where the messages of Heddle::PubSub are stored: memory (for this server only), or the URL " \
                       "of a Redis or PostgreSQL that several Heddle servers share",
                 reason: "Set it when several servers share topics",
                 details: "A URL begins with `redis://`, `rediss://`, `postgres://` or `postgresql://`. All servers " \
                          "with the same URL share their topics. If several applications share one Redis or " \
                          "PostgreSQL, append a name for each application, such as `?name=shop`. Heddle gives this " \
                          "name to its stream in Redis, or to its tables and its channel in PostgreSQL. The option " \
                          "needs the gem redis-client or pg. See [Pub/sub](pubsub.md#several-machines)."),
      Option.new(name: :pubsub_memory, unit: :bytes, default: 16 << 20, range: (64 << 10)..(1 << 30),
                 example: 'pubsub_memory "64m"',
                 text: "memory for messages of Heddle::PubSub, shared by all processes of the server",
                 reason: "Raise it when reconnecting subscribers miss messages that are no longer stored, or when " \
                         "the server has more than 16,384 topics",
                 details: "Heddle rounds the size up to a power of two. A message may use a quarter of this size. " \
                          "Each KiB also adds an entry to the table of topics: 16 MiB have room for 16,384 topics. " \
                          "Unused memory costs nothing. See [Pub/sub](pubsub.md)."),
      Option.new(name: :pubsub_history, unit: :count, default: 100, range: 0..1000,
                 text: "maximum number of missed messages of a topic that a reconnecting subscriber gets",
                 reason: "Raise it when topics get more messages than this while a client reconnects",
                 details: "The subscriber gets fewer messages if pubsub_memory has no room for them, and no message " \
                          "that is older than a day. A subscriber that has missed more messages than it can get " \
                          "receives a reset (a notice that messages are lost).")
    ].freeze
  end
end
