# frozen_string_literal: true

require "heddle/native"

module Heddle
  # The kernel interfaces with which an event loop waits for I/O: +:io_uring+, +:epoll+, +:kqueue+ and +:select+.
  #
  # By default Heddle uses the best one that works on this machine. +HEDDLE_SELECTOR=epoll+ in the environment,
  # +Heddle.run(selector: :epoll)+ and +Heddle::Scheduler.new(selector: :epoll)+ select another one.
  module Selector
    # The environment variable that names the selector to use by default.
    VARIABLE = "HEDDLE_SELECTOR"

    class << self
      # @return [Array<Symbol>] the selectors that work in this thread, the best first
      def available = built.reject { |name| unavailable_reason(name) }

      # The default selector of a new scheduler in this thread: the value of HEDDLE_SELECTOR, or else the best selector
      # that works here.
      #
      # @return [Symbol]
      # @raise [ArgumentError] if the selector in HEDDLE_SELECTOR does not work here
      def best
        named = ENV.fetch(VARIABLE, "")
        return find(named, "#{VARIABLE} in the environment") unless named.empty?

        available.first.tap { |one| report_fallback(one, unavailable_reason(built.first)) unless one == built.first }
      end

      # @param name [Symbol, String]
      # @param source [String] where the name is from, for the error message
      # @return [Symbol] the selector
      # @raise [ArgumentError] if the selector is unknown, or does not work on this machine
      def find(name, source = "the selector")
        name = name.to_s.downcase.to_sym
        unless built.include?(name)
          raise ArgumentError,
                "#{source} is #{name.inspect}, but this build of Heddle supports only #{built.join(", ")}"
        end

        reason = unavailable_reason(name)
        raise ArgumentError, "#{source} is #{name.inspect}, which does not work here: #{reason}" if reason

        name
      end

      # @param name [Symbol]
      # @return [String, nil] why the selector does not work on this machine or in this thread; nil if it works
      def unavailable_reason(name)
        (migration if name == :io_uring) || kernel_unavailable_reason(name)
      end

      private

      # Logs once that the best selector of this build does not work here. A forked child does not log it again. The
      # extension calls this method without a reason when a loop gets no locked memory for io_uring.
      def report_fallback(chosen, reason = "the limit of locked memory is reached (ulimit -l)")
        return if @reported_fallback || Ractor.current != Ractor.main

        @reported_fallback = true
        Events.report(:selector_fallback, selector: chosen, best: built.first, reason:)
      end

      # Returns why Ruby's threads make io_uring unusable; nil: they don't. An io_uring instance belongs to one native
      # thread, but in a Ractor, and with RUBY_MN_THREADS, Ruby moves Ruby threads between native threads.
      def migration
        return "Ruby moves the threads of a Ractor between native threads" unless Ractor.current == Ractor.main

        "with RUBY_MN_THREADS Ruby moves threads between native threads" if ENV["RUBY_MN_THREADS"] == "1"
      end
    end
  end
end
