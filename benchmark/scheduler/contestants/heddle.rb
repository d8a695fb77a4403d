# frozen_string_literal: true

module Bench
  module Contestants
    # Heddle's own scheduler, through the standard interface, with each of its selectors.
    class Heddle < Contestant
      def self.variants = %i[io_uring epoll select].map { |selector| new(selector) }

      def initialize(selector)
        super()
        @selector = selector
      end

      def key = "heddle-#{@selector}"

      def label = "Heddle #{@selector}"

      def role = :heddle

      # @return [String] the checkout it is loaded from
      def root = ROOT

      def prepare
        $LOAD_PATH.unshift(File.join(root, "lib"))
        require "heddle"
        scheduler = ::Heddle::Scheduler.new(selector: @selector)
        # A machine may forbid a selector; under another one's figures the column would lie.
        raise Unavailable, "runs on #{scheduler.selector} here" unless scheduler.selector.to_sym == @selector

        scheduler.close
      rescue LoadError
        raise Unavailable, "its extension is not built for this Ruby: run bin/setup"
      end

      def version = "#{::Heddle::VERSION}, #{@selector}#{", the default" if ::Heddle::Selector.best == @selector}"

      def scheduler = ::Heddle::Scheduler.new(selector: @selector)

      def own_queue = ::Heddle::Channel.new
    end
  end
end
