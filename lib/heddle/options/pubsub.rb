# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of the history of Heddle::PubSub.
    PUBSUB = [
      Option.new(name: :pubsub, unit: :url, default: "memory",
                 example: 'pubsub "redis://localhost:6379/1"',
                 text: "where the messages of Heddle::PubSub are kept: memory (of this server alone), or the URL of " \
                       "a Redis or PostgreSQL that several servers share",
                 reason: "Set it when several servers share topics",
                 details: "`redis://`, `rediss://`, `postgres://` or `postgresql://`: all servers with this URL " \
                          "share their topics. Where several applications share one Redis or PostgreSQL, " \
                          "`?name=shop` at its end names the stream, or the tables and the channel, of this one. " \
                          "Needs the gem redis-client or pg. See [Pub/sub](pubsub.md#several-machines)."),
      Option.new(name: :pubsub_memory, unit: :bytes, default: 16 << 20, range: (64 << 10)..(1 << 30),
                 example: 'pubsub_memory "64m"',
                 text: "memory for messages of Heddle::PubSub, shared by all processes of the server",
                 reason: "Raise it when returning subscribers get resets, or for more than 16,384 topics",
                 details: "Rounded up to a power of two. A message may have a quarter of it, and the last position " \
                          "of one topic is kept for each KiB. Unused memory costs nothing. See [Pub/sub](pubsub.md)."),
      Option.new(name: :pubsub_history, unit: :count, default: 100, range: 0..1000,
                 text: "number of messages of a topic that a returning subscriber gets",
                 reason: "Raise it when a topic has more messages while a client reconnects",
                 details: "Fewer where pubsub_memory has no room for them, and none that is older than a day. A " \
                          "subscriber that missed more gets a reset.")
    ].freeze
  end
end
