# frozen_string_literal: true

require "heddle/native"

module Heddle
  # The ways to ask the kernel what is ready: +:io_uring+, +:epoll+, +:kqueue+, +:select+.
  #
  # By default Heddle uses the best one that this machine allows. +HEDDLE_SELECTOR=epoll+ in the environment,
  # +Heddle.run(selector: :epoll)+ and +Heddle::Scheduler.new(selector: :epoll)+ choose another one.
  module Selector
    # The environment variable that names the selector.
    VARIABLE = "HEDDLE_SELECTOR"

    class << self
      # @return [Array<Symbol>] what this thread could use now, best first
      def available
        built.reject { |name| unavailable_reason(name) }
      end

      # The selector that a new scheduler of this thread gets by default: the one HEDDLE_SELECTOR names,
      # else the first that works here.
      #
      # @return [Symbol]
      # @raise [ArgumentError] if HEDDLE_SELECTOR names none that works here
      def best
        named = ENV.fetch(VARIABLE, "")
        return find(named, "#{VARIABLE} in the environment") unless named.empty?

        available.first.tap { |chosen| report_fallback(chosen) }
      end

      # @param name [Symbol, String]
      # @param source [String] where the name came from, for the message
      # @return [Symbol] the same name
      # @raise [ArgumentError] if there is no such selector, or this machine can't run it
      def find(name, source = "selector:")
        name = name.to_s.downcase.to_sym
        unless built.include?(name)
          raise ArgumentError,
                "#{source} names #{name.inspect}, which is not built in here: use one of #{built.join(", ")}"
        end

        reason = unavailable_reason(name)
        raise ArgumentError, "#{source} names #{name.inspect}, which can't run here: #{reason}" if reason

        name
      end

      # @param name [Symbol]
      # @return [String, nil] why this machine, or this thread, can't use the selector; nil when it can
      def unavailable_reason(name)
        return migration if name == :io_uring && migration

        kernel_unavailable_reason(name)
      end

      private

      # Logs once that the best built-in selector can't be used. A forked child does not log it again.
      def report_fallback(chosen)
        return if chosen == built.first || @reported_fallback || Ractor.current != Ractor.main

        @reported_fallback = true
        Events.report(:selector_fallback, selector: chosen, best: built.first, reason: unavailable_reason(built.first))
      end

      # A ring belongs to one native thread, but in a Ractor, and with RUBY_MN_THREADS, Ruby moves its threads between
      # native ones.
      def migration
        return "Ruby moves the threads of a Ractor between native threads" unless Ractor.current == Ractor.main

        "with RUBY_MN_THREADS Ruby moves threads between native threads" if ENV["RUBY_MN_THREADS"] == "1"
      end
    end
  end
end
