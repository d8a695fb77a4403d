# frozen_string_literal: true

module Bench
  module Contestants
    # async on io-event, with each of the selectors that it has on this system.
    class Async < Contestant
      SELECTORS = { "URing" => "io_uring", "EPoll" => "epoll" }.freeze

      def self.variants = SELECTORS.keys.map { |name| new(name) }

      def initialize(selector)
        super()
        @selector = selector
      end

      def key = "async-#{SELECTORS.fetch(@selector)}"

      def label = "async #{SELECTORS.fetch(@selector)}"

      def environment = { "IO_EVENT_SELECTOR" => @selector }

      def prepare
        require "async"
        require "async/queue"
        return if IO::Event::Selector.const_defined?(@selector)

        raise Unavailable, "io-event was built without #{@selector}: it needs liburing's headers to be there"
      end

      def version = "#{::Async::VERSION}, io-event #{IO::Event::VERSION}, #{@selector}"

      def scheduler = ::Async::Scheduler.new

      def own_queue = ::Async::Queue.new
    end
  end
end
