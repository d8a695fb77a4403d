# frozen_string_literal: true

require_relative "../backends"

module Bench
  module Realtime
    module Rows
      # Messages that a Redis or PostgreSQL has confirmed, and that a subscriber with a position did not get, while that
      # server's connections are cut or the server itself is killed. Two processes stand for two machines.
      class Delivery < Row
        BACKENDS = { "redis" => Backends::Redis, "postgresql" => Backends::Postgresql }.freeze

        attr_reader :key, :title, :goals

        # @param backend [Class] of {Backends}
        # @param strike [Symbol] what happens to it: :cut_connections or :restart
        # @param messages [Integer]
        # @param strikes [Integer] how often, evenly
        # @param durable [Boolean] whether it writes each message to the disk before it confirms it. One that does not
        #   may lose messages, but its subscribers get a reset then
        def initialize(key:, title:, backend:, strike:, messages:, strikes: 3, durable: true)
          super()
          @key = key
          @title = title
          @backend = backend
          @strike = strike
          @messages = messages
          @strikes = strikes
          @durable = durable
          @goals = [Goal.new(at_most: 0, unit: "messages")]
        end

        # @return [Boolean] no server of HTTP takes part
        def alone? = true

        def unit = "messages"

        def compared? = false

        def details = %i[resets unconfirmed doubled]

        def excludes(contestant) = contestant.key == "heddle" ? nil : "has no such backend here"

        def sizes(quick:) = { messages: quick ? @messages / 20 : @messages }

        # @param size [Hash]
        # @return [Hash] the sample: messages that were lost without a reset, and positions that two messages have
        def measure(size)
          @backend.run(durable: @durable) do |server|
            publisher, subscriber = Array.new(2) { PubSubMachine.new(server.url, "room") }
            account = publish(server, publisher, size[:messages])
            received = subscriber.messages_until(size[:messages].to_s)
            sample(account, received)
          ensure
            [publisher, subscriber].each { |machine| machine&.stop }
          end
        end

        private

        # @return [Array<Array>] each message: its number as text, and its position if it was confirmed
        def publish(server, publisher, messages)
          strikes = Array.new(@strikes) { |i| messages * (i + 1) / (@strikes + 1) }
          working = nil
          (1..messages).map do |number|
            working = Thread.new { server.public_send(@strike) } if strikes.include?(number)
            working = working.join && nil if number == messages
            [number.to_s, confirm(publisher, number, messages)]
          end
        end

        # The last one is published until it is confirmed: the subscriber waits for it.
        def confirm(publisher, number, messages)
          what, *, position = publisher.try(number.to_s)
          return position if what == "published"

          confirm(publisher, number, messages) if number == messages
        end

        def sample(account, received)
          confirmed = account.select(&:last)
          doubled = count_doubled(confirmed, received.select(&:first))
          { value: count_lost(confirmed.to_h { |data, _| [Integer(data), true] }, received) + doubled, doubled:,
            resets: received.count { |data, _| data.nil? }, unconfirmed: account.size - confirmed.size }
        end

        # Those between two that came, with no reset between them.
        def count_lost(confirmed, received)
          last = lost = 0
          received.each_with_index do |(data, _), i|
            next if data.nil?

            number = Integer(data)
            forgiven = !@durable && i.positive? && received[i - 1].first.nil?
            lost += ((last + 1)...number).count { |one| confirmed[one] } unless forgiven
            last = number
          end
          lost
        end

        # @return [Integer] positions that two messages have, and messages that came twice
        def count_doubled(confirmed, received)
          positions = (confirmed + received).uniq.group_by(&:last).count { |_, same| same.size > 1 }
          positions + received.size - received.uniq.size
        end
      end
    end
  end
end
