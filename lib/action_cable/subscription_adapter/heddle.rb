# frozen_string_literal: true

require "heddle/runtime"
require "action_cable/subscription_adapter/base"
require "action_cable/subscription_adapter/channel_prefix"
require "action_cable/subscription_adapter/subscriber_map"

module ActionCable
  module SubscriptionAdapter
    # Action Cable's broadcasts over Heddle::PubSub, for `adapter: heddle` in config/cable.yml. Under Heddle they reach
    # the clients of all workers without another service. With a URL as `pubsub` in config/heddle.rb, they reach the
    # clients of all machines. Under another server, `url` in config/cable.yml names the Redis or PostgreSQL server.
    class Heddle < Base
      autoload :Listener, "action_cable/subscription_adapter/heddle/listener"

      NO_SERVER = "config/cable.yml: under a server other than Heddle, the adapter heddle needs a url; without it, " \
                  "broadcasts from other processes are lost. Write url: redis://… or postgres://…, or set HEDDLE_PUBSUB"
      private_constant :NO_SERVER

      prepend ChannelPrefix

      # @param server [ActionCable::Server::Base]
      # @raise [ArgumentError] when the url does not name a backend, or this process already uses another address
      def initialize(server)
        super
        @lock = Thread::Mutex.new
        @listener = nil
        choose_backend(server.config.cable[:url]&.to_s)
      end

      # @param channel [String]
      # @param payload [String]
      # @return [String] the message's position
      # @raise [Heddle::PubSub::UnreachableError] when neither a server nor a backend accepts the message
      def broadcast(channel, payload) = ::Heddle::PubSub.publish(channel, payload)

      # Calls `callback` for each message of the channel, in order.
      # @param channel [String]
      # @param callback [#call] a callback that never waits
      # @param success_callback [#call, nil] called when the channel is subscribed
      # @return [void]
      # @raise [Heddle::PubSub::UnreachableError] when this process belongs to no Heddle server, and there
      #   is no backend
      def subscribe(channel, callback, success_callback = nil)
        raise ::Heddle::PubSub::UnreachableError, NO_SERVER unless reachable?

        listener.add_subscriber(channel, callback, success_callback)
      end

      # @param channel [String]
      # @param callback [#call]
      # @return [void]
      def unsubscribe(channel, callback) = listener.remove_subscriber(channel, callback)

      # @return [void]
      def shutdown = @lock.synchronize { @listener&.shutdown }

      private

      def reachable? = ::Heddle::PubSub::Route.backend || ::Heddle::PubSub::History.open?

      # A forked process makes its own listener.
      def listener
        @lock.synchronize do
          @listener = Listener.new(poster, logger) unless @listener&.pid == Process.pid
          @listener
        end
      end

      # From Rails 8.2 on, and with actioncable-next, the server has an executor in place of an event loop.
      def poster = respond_to?(:executor, true) ? executor : server.event_loop

      def choose_backend(url)
        return if url.nil? || url.empty?

        used = ::Heddle::PubSub::Route.backend
        return if used && used.to_s == ::Heddle::PrintableText.url(url)

        if used || ::Heddle::PubSub::History.open?
          raise ArgumentError, "the url in config/cable.yml is not the address that this process uses for pub/sub: " \
                               "write pubsub \"…\" with this url into config/heddle.rb, or remove the url and set " \
                               "HEDDLE_PUBSUB for processes outside of the server"
        end
        ::Heddle::PubSub.server = url
      end
    end
  end
end
