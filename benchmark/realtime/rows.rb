# frozen_string_literal: true

require_relative "../http/rows/http_row"
require_relative "../http/native"
require_relative "rows/socket_row"
require_relative "rows/idle"
require_relative "rows/tls_idle"
require_relative "rows/traffic"
require_relative "rows/departure"
require_relative "rows/cable_reload"
require_relative "rows/delivery"

module Bench
  module Realtime
    # The lines of the table, and what each wants of Heddle.
    module Rows
      module_function

      # @return [Array<Row>]
      def all
        [idle, subscribed, events, tls, publish, events_publish, handshakes, echo, stopped, departure, cable,
         cable_reload, *Delivery::BACKENDS.flat_map { |name, backend| delivery(name, backend) }]
      end

      def idle
        Idle.new(key: "idle", title: "10,000 idle sockets, each", path: "/idle", connections: 10_000,
                 goals: [Goal.new(at_most: 2.0, unit: "kB")])
      end

      def subscribed
        Idle.new(key: "subscribed", title: "10,000 idle sockets with one subscription, each", path: "/room",
                 connections: 10_000, goals: [Goal.new(at_most: 2.5, unit: "kB")])
      end

      def events
        Idle.new(key: "events", title: "10,000 idle event streams, each", path: "/room", events: "/events",
                 connections: 10_000, goals: [Goal.new(at_most: 3.0, unit: "kB")])
      end

      def tls
        TlsIdle.new(key: "tls", title: "2,000 idle sockets over TLS, each", path: "/idle", connections: 2_000,
                    goals: [best(1.0)])
      end

      def cable
        Idle.new(key: "cable", title: "2,000 idle connections of Action Cable with one stream, each", path: "/cable",
                 connections: 2_000, goals: [Goal.new(at_most: 15, unit: "kB")])
      end

      def cable_reload
        CableReload.new(key: "cable-reload", title: "1,000 broadcasts to 200 clients of Action Cable over a reload: " \
                                                    "not in order, or not at all",
                        path: "/cable", connections: 200, goals: [Goal.new(at_most: 0, unit: "messages")])
      end

      def delivery(name, backend)
        label = backend::LABEL
        [Delivery.new(key: "#{name}-cut", title: "10,000 messages, #{label}'s connections cut three times: lost",
                      backend:, strike: :cut_connections, messages: 10_000),
         Delivery.new(key: "#{name}-killed", title: "2,000 messages, #{label} killed three times: lost",
                      backend:, strike: :restart, messages: 2_000),
         Delivery.new(key: "#{name}-forgets",
                      title: "2,000 messages, #{label} without durable storage killed three times: lost, no reset",
                      backend:, strike: :restart, messages: 2_000, durable: false)]
      end

      def publish
        Publish.new(key: "publish", title: "100 bytes to 10,000 sockets: the last has them", path: "/room",
                    connections: 10_000, goals: [Goal.new(at_most: 60, unit: "ms"), best(1.0)])
      end

      def events_publish
        Publish.new(key: "events-publish", title: "100 bytes to 10,000 event streams: the last has them", path: "/room",
                    events: "/events", connections: 10_000, goals: [best(1.0)])
      end

      def handshakes
        Handshakes.new(key: "handshakes", title: "handshakes, 64 at once", path: "/idle", connections: 64,
                       goals: [Goal.new(at_least: 1.2, than: "iodine")])
      end

      def echo
        Echo.new(key: "echo", title: "echo, 1,000 sockets with 10 messages a second, p99", path: "/echo",
                 connections: 1_000, goals: [Goal.new(at_most: 20, unit: "ms")])
      end

      def stopped
        StoppedReader.new(key: "stopped", title: "one of 10 readers stops, 30 MB are published: memory", path: "/room",
                          connections: 10, goals: [Goal.new(at_most: 2, unit: "MB")])
      end

      def departure
        Departure.new(key: "departure", title: "10,000 sockets are closed at once: the latest answer to another client",
                      path: "/room", connections: 10_000, goals: [best(1.0)])
      end

      def best(ratio) = Goal.new(at_least: ratio, than: Goal::BEST)
    end
  end
end
