# frozen_string_literal: true

require "heddle/options/option"

module Heddle
  module Options
    # Options of the history of Heddle::PubSub.
    PUBSUB = [
      Option.new(name: :pubsub, unit: :url, default: "memory",
                 example: 'pubsub "redis://localhost:6379/1"',
                 text: "where messages of Heddle::PubSub get their order: in this server's memory, a Redis or a " \
                       "PostgreSQL",
                 details: "`redis://`, `rediss://`, `postgres://` or `postgresql://`: then all servers with this " \
                          "address share their topics. Needs the gem redis-client or pg. See " \
                          "[Pub/sub](pubsub.md#several-machines)."),
      Option.new(name: :pubsub_name, unit: :word, default: "heddle_pubsub",
                 text: "name of the stream in Redis, or of the tables and the channel in PostgreSQL",
                 details: "For applications that share one: at most 40 small letters, digits and `_`."),
      Option.new(name: :pubsub_stored, unit: :count, default: 10_000, range: 100..10_000_000,
                 text: "number of messages of all topics that Redis or PostgreSQL keeps",
                 details: "A server that was away for more of them gives its subscribers a reset."),
      Option.new(name: :pubsub_memory, unit: :bytes, default: 16 << 20, range: (64 << 10)..(1 << 30),
                 example: 'pubsub_memory "64m"',
                 text: "memory for messages of Heddle::PubSub, which all processes of the server share",
                 details: "Rounded up to a power of two. A message may have a quarter of it. Memory that no " \
                          "message has used yet costs nothing. See [Pub/sub](pubsub.md)."),
      Option.new(name: :pubsub_history, unit: :count, default: 100, range: 0..1000,
                 text: "number of messages of a topic that a returning subscriber gets",
                 details: "Fewer where pubsub_memory has no room for them. A subscriber that missed more gets a " \
                          "reset."),
      Option.new(name: :pubsub_history_age, unit: :seconds, default: 300, range: 0..86_400,
                 text: "how old a message may be that a returning subscriber gets"),
      Option.new(name: :pubsub_topics, unit: :count, default: 16_384, range: 8..1_048_576,
                 text: "number of topics whose last offset is kept",
                 details: "Rounded up to a power of two; the topics that were published to longest ago are " \
                          "forgotten first. A subscriber of such a topic that comes back gets a reset.")
    ].freeze
  end
end
